// The workspace tools that Mastra gives an agent, with the rule that a file must be read before it is written:
// KIND DIRECTORY, an empty one.

import { WORKSPACE_TOOLS, Workspace, createWorkspaceTools } from '@mastra/core/workspace';
import { appendFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { filesystem } from './filesystems.mjs';
import { outcomes, print } from './report.mjs';

const [kind, directory] = process.argv.slice(2);
const { READ_FILE, WRITE_FILE, EDIT_FILE, LIST_FILES, GREP, FILE_STAT, MKDIR, DELETE } = WORKSPACE_TOOLS.FILESYSTEM;
const guarded = { requireReadBeforeWrite: true };
const workspace = new Workspace({
  filesystem: filesystem(kind, directory),
  tools: { [WRITE_FILE]: guarded, [EDIT_FILE]: guarded },
});
await workspace.init();
const tools = await createWorkspaceTools(workspace);

/** @param {string} tool @param {Record<string, unknown>} input */
const use = (tool, input) => tools[tool].execute(input, { workspace });

/** Another program changes the file, at least one millisecond after the read. @param {string} text */
async function appendFromOutside(text) {
  await delay(10); // the clock of tmpfs advances every 4 ms; a mount needs no pause (guard.mjs)
  appendFileSync(`${directory}/notes/a.md`, text);
}

print(await outcomes(directory, [
  ['write a new file', () => use(WRITE_FILE, { path: 'notes/a.md', content: 'one\ntwo\n' })],
  ['write it unread', () => use(WRITE_FILE, { path: 'notes/a.md', content: 'x' })],
  ['edit it unread', () => use(EDIT_FILE, { path: 'notes/a.md', old_string: 'one', new_string: 'x' })],
  ['read it', () => use(READ_FILE, { path: 'notes/a.md' })],
  ['edit it', () => use(EDIT_FILE, { path: 'notes/a.md', old_string: 'one', new_string: 'uno' })],
  ['edit it again unread', () => use(EDIT_FILE, { path: 'notes/a.md', old_string: 'two', new_string: 'dos' })],
  ['read it again', () => use(READ_FILE, { path: 'notes/a.md', showLineNumbers: false })],
  ['another program appends', () => appendFromOutside('three\n')],
  ['edit the changed file', () => use(EDIT_FILE, { path: 'notes/a.md', old_string: 'uno', new_string: 'one' })],
  ['write the changed file', () => use(WRITE_FILE, { path: 'notes/a.md', content: 'x' })],
  ['read the change', () => use(READ_FILE, { path: 'notes/a.md' })],
  ['write it', () => use(WRITE_FILE, { path: 'notes/a.md', content: 'eins\nzwei\neins\n' })],
  ['read what was written', () => use(READ_FILE, { path: 'notes/a.md' })],
  ['edit a text that occurs twice', () => use(EDIT_FILE, { path: 'notes/a.md', old_string: 'eins', new_string: 'x' })],
  ['read once more', () => use(READ_FILE, { path: 'notes/a.md', offset: 2, limit: 1 })],
  ['edit all', () => use(EDIT_FILE, { path: 'notes/a.md', old_string: 'eins', new_string: 'x', replace_all: true })],
  ['edit a missing file', () => use(EDIT_FILE, { path: 'none.md', old_string: 'a', new_string: 'b' })],
  ['read a missing file', () => use(READ_FILE, { path: 'none.md' })],
  ['read outside', () => use(READ_FILE, { path: '../none.md' })],
  ['write a second', () => use(WRITE_FILE, { path: 'src/deep/b.ts', content: 'export const two = 2;\n' })],
  ['list', () => use(LIST_FILES, { path: '.' })],
  ['list deep', () => use(LIST_FILES, { path: '.', maxDepth: 5 })],
  ['list by pattern', () => use(LIST_FILES, { path: '.', pattern: '**/*.ts' })],
  ['list a missing directory', () => use(LIST_FILES, { path: 'none' })],
  ['grep', () => use(GREP, { pattern: 'zwei|two', path: '.' })],
  ['grep one kind', () => use(GREP, { pattern: 'T[WO]+', path: '**/*.ts', caseSensitive: false })],
  ['grep without a match', () => use(GREP, { pattern: 'nowhere', path: '.' })],
  ['stat', () => use(FILE_STAT, { path: 'src/deep/b.ts' })],
  ['mkdir', () => use(MKDIR, { path: 'new/er' })],
  ['delete a tree, not recursive', () => use(DELETE, { path: 'src' })],
  ['delete a tree', () => use(DELETE, { path: 'src', recursive: true })],
  ['list what is left', () => use(LIST_FILES, { path: '.', maxDepth: 5 })],
]));
await workspace.destroy();
