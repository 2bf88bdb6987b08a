// An agent generates twice while its skill changes before, during and between the generations: KIND DIRECTORY. The
// directory contains the skill `skills/review`. A scripted model records which version of the skill each prompt contains.

import { Agent } from '@mastra/core/agent';
import { SkillsProcessor } from '@mastra/core/processors';
import { Workspace } from '@mastra/core/workspace';
import { renameSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { filesystem } from './filesystems.mjs';
import { scripted } from './model.mjs';
import { print } from './report.mjs';

const [kind, directory] = process.argv.slice(2);
const SKILL = `${directory}/skills/review`;

/** Replace the skill as an editor does, at least one millisecond after Mastra's last check. @param {string} version */
async function change(version) {
  const checked = Date.now();
  while (Date.now() <= checked + 10) await delay(1);
  writeFileSync(`${SKILL}/draft`, `---\nname: review\ndescription: description ${version}\n---\ninstructions ${version}\n`);
  renameSync(`${SKILL}/draft`, `${SKILL}/SKILL.md`);
}

/** @param {string} prompt */
const versions = (prompt) => [...new Set(prompt.match(/(description|instructions) \w+/g))].sort();

/** @type {Record<string, string[]>} */
const prompts = {};
const workspace = new Workspace({ filesystem: filesystem(kind, directory), skills: ['skills'] });
await workspace.init();
if (workspace.skills === undefined) throw new Error('a workspace with skill paths has skills');
/** @type {any} */ (workspace.skills.constructor).STALENESS_CHECK_COOLDOWN = 0;

const model = scripted([
  async (prompt) => {
    prompts.first = versions(prompt);
    await change('during');
    return { type: 'tool', name: 'skill', input: { name: 'review' } };
  },
  (prompt) => {
    prompts.firstAfterTheTool = versions(prompt);
    return { type: 'tool', name: 'mastra_workspace_write_file', input: { path: 'notes.md', content: 'noted\n' } };
  },
  () => ({ type: 'text', text: 'done' }),
  (prompt) => {
    prompts.second = versions(prompt);
    return { type: 'text', text: 'done again' };
  },
]);
const agent = new Agent({
  id: 'reviewer',
  name: 'reviewer',
  instructions: 'Review.',
  model,
  workspace,
  inputProcessors: [new SkillsProcessor({ workspace, blockingRefresh: true })],
});

await workspace.skills.list();
await change('before');
const first = await agent.generate('Review this.');
await change('between');
const second = await agent.generate('And this.');
print({ prompts, answers: [first.text, second.text] });
await workspace.destroy();
