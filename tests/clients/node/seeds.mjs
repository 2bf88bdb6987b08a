// Seed from Node, read the seeds as files and as skills, and seed a skill again: MOUNTPOINT. By default Mastra checks the
// times of directories, so a changed seed must change the times of its directories.

import { Workspace } from '@mastra/core/workspace';
import { execFileSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { VfsdError, VfsdFilesystem } from 'vfsd';
import { print } from './report.mjs';

const [mountpoint] = process.argv.slice(2);
const filesystem = new VfsdFilesystem({ mountpoint });
const skill = (/** @type {string} */ description) => `---\nname: review\ndescription: ${description}\n---\nDo it with care.\n`;
const references = { 'style.md': 'Prefer short names.\n' };
const more = { files: { 'scripts/check.sh': '#!/bin/sh\necho checked\n' }, modes: { 'scripts/check.sh': 0o755 } };

/** @param {Promise<unknown>} refused */
const code = (refused) => refused.then(() => 'no error', (error) => (error instanceof VfsdError ? error.code : String(error)));

const seeded = [
  await filesystem.seedFile('readme.md', 'hello\n'),
  await filesystem.seedFile('readme.md', 'hello\n'),
  await filesystem.seedSkill('skills/review', skill('Reviews code'), references),
  await filesystem.seedSkill('skills/review', skill('Reviews code'), references),
  await filesystem.seedSkill('skills/review', skill('Reviews prose'), references, more),
];
await filesystem.writeFile('notes.md', 'noted\n');
const workspace = new Workspace({ filesystem, skills: ['skills'] });
await workspace.init();
if (workspace.skills === undefined) throw new Error('a workspace with skill paths has skills');
const { skills } = workspace;
/** @type {any} */ (skills.constructor).STALENESS_CHECK_COOLDOWN = 0;
const descriptions = async () => (await skills.list()).map(({ name, description }) => `${name}: ${description}`);

const before = await descriptions();
const checked = Date.now();
while (Date.now() <= checked) await delay(1);
seeded.push(await filesystem.seedSkill('skills/review', skill('Reviews maps'), references, more));
await skills.maybeRefresh();

print({
  seeded,
  before,
  reloaded: await descriptions(),
  read: [
    await filesystem.readFile('readme.md', { encoding: 'utf-8' }),
    await filesystem.readFile('skills/review/references/style.md', { encoding: 'utf-8' }),
  ],
  references: [
    await skills.getReference('review', 'references/style.md'),
    await skills.getReference('review', 'style.md'),
    await skills.getReference('review', 'none.md'),
    await skills.getScript('review', 'scripts/check.sh'),
    await skills.listReferences('review'),
  ],
  ran: execFileSync(`${mountpoint}/skills/review/scripts/check.sh`, { encoding: 'utf-8' }),
  all: await filesystem.listAllPaths(),
  broken: await code(filesystem.seedSkill('skills/broken', 'no front matter\n')),
  stray: await code(filesystem.seedSkill('skills/stray', skill('Strays'), {}, { modes: { 'scripts/none.sh': 0o755 } })),
});
await workspace.destroy();
