/**
 * The example: an agent has a skill and takes notes, the daemon is killed during the run, and the agent continues from
 * its notes. The caller gives the model.
 */

import { Agent } from '@mastra/core/agent';
import { Workspace } from '@mastra/core/workspace';
import { VfsdFilesystem } from 'vfsd';

const SKILL = `---
name: field-notes
description: How to take notes so that another session can continue from them
---
Write one fact a line to notes/facts.md, each with its source in brackets. references/sources.md says which sources are valid.
`;
const REFERENCES = { 'sources.md': 'A source is a file you have read, or the word "user".\n' };

/**
 * One session of the agent: it connects, gets its skill and a task, and disconnects.
 * @param {import('@mastra/core/agent').AgentConfig['model']} model
 * @param {string} mountpoint
 * @param {string} task
 */
async function session(model, mountpoint, task) {
  const filesystem = new VfsdFilesystem({ mountpoint });
  await filesystem.seedSkill('skills/field-notes', SKILL, REFERENCES);
  const workspace = new Workspace({ filesystem, skills: ['skills'] });
  await workspace.init();
  const agent = new Agent({ id: 'scout', name: 'scout', instructions: 'You keep field notes in your workspace.', model, workspace });
  try {
    const { text } = await agent.generate(task, { maxSteps: 10 });
    return { text, files: await filesystem.listAllPaths() };
  } finally {
    await workspace.destroy();
  }
}

/**
 * @param {import('@mastra/core/agent').AgentConfig['model']} model
 * @param {import('./mount.mjs').Mount} mount
 * @param {(line: string) => void} say
 */
export async function run(model, mount, say) {
  mount.start();
  const first = await session(model, mount.path, 'Note with your skill: the bridge is closed on Mondays; the ferry costs 4 euros.');
  say(`first session: ${first.text}\n  files: ${first.files.join(', ')}`);
  mount.kill();
  say('the daemon was killed');
  mount.start();
  const second = await session(model, mount.path, 'From your notes: what does the ferry cost? Answer in one sentence.');
  say(`second session: ${second.text}\n  files: ${second.files.join(', ')}`);
  return { first, second };
}
