// A tool reads a file, another program changes it at once, and then a tool writes it. The write must be refused, however
// short the time between is: KIND DIRECTORY TIMES. Prints how many writes were refused, and how many changes were lost.

import { FileReadRequiredError, StaleFileError, WORKSPACE_TOOLS, Workspace, createWorkspaceTools } from '@mastra/core/workspace';
import { appendFileSync, writeFileSync } from 'node:fs';
import { filesystem } from './filesystems.mjs';
import { print } from './report.mjs';

const [kind, directory, times] = process.argv.slice(2);
const { READ_FILE, WRITE_FILE } = WORKSPACE_TOOLS.FILESYSTEM;
const workspace = new Workspace({
  filesystem: filesystem(kind, directory),
  tools: { [WRITE_FILE]: { requireReadBeforeWrite: true } },
});
const tools = await createWorkspaceTools(workspace);
const counted = { refused: 0, lost: 0 };

writeFileSync(`${directory}/a.md`, '');
for (let number = 0; number < Number(times); number += 1) {
  await tools[READ_FILE].execute({ path: 'a.md' }, { workspace });
  appendFileSync(`${directory}/a.md`, 'changed by another program\n');
  try {
    await tools[WRITE_FILE].execute({ path: 'a.md', content: '' }, { workspace });
    counted.lost += 1;
  } catch (error) {
    if (!(error instanceof FileReadRequiredError || error instanceof StaleFileError)) throw error;
    counted.refused += 1;
  }
}
print(counted);
await workspace.destroy();
