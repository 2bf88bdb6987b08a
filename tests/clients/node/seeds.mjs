// Seeds from Node, read as files and as skills, and the end of the scope: MOUNTPOINT.

import { Workspace } from '@mastra/core/workspace';
import { VfsdError, VfsdFilesystem } from 'vfsd';
import { print } from './report.mjs';

const [mountpoint] = process.argv.slice(2);
const filesystem = new VfsdFilesystem({ mountpoint });
const skill = (/** @type {string} */ description) => `---\nname: review\ndescription: ${description}\n---\nDo it with care.\n`;
const references = { 'style.md': 'Prefer short names.\n' };

/** @param {Promise<unknown>} refused */
const code = (refused) => refused.then(() => 'nothing', (error) => (error instanceof VfsdError ? error.code : String(error)));

const seeded = [
  await filesystem.seedFile('readme.md', 'hello\n'),
  await filesystem.seedFile('readme.md', 'hello\n'),
  await filesystem.seedSkill('skills/review', skill('Reviews code'), references),
  await filesystem.seedSkill('skills/review', skill('Reviews code'), references),
  await filesystem.seedSkill('skills/review', skill('Reviews prose'), references),
];
await filesystem.writeFile('notes.md', 'noted\n');
const workspace = new Workspace({ filesystem, skills: ['skills'] });
await workspace.init();

print({
  seeded,
  read: [
    await filesystem.readFile('readme.md', { encoding: 'utf-8' }),
    await filesystem.readFile('skills/review/references/style.md', { encoding: 'utf-8' }),
  ],
  skills: (await workspace.skills?.list())?.map(({ name, description }) => `${name}: ${description}`),
  reference: await workspace.skills?.getReference('review', 'references/style.md'),
  all: await filesystem.listAllPaths(),
  broken: await code(filesystem.seedSkill('skills/broken', 'no front matter\n')),
});
await filesystem.destroyPersisted();
