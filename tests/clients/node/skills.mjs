// Skills as Mastra finds them below `skills/`, reads them and notices that they have changed: DIRECTORY, an empty one.
// Mastra looks for changes every 30 s at most; here that is never too soon, which is its clock turned forward.

import { LocalFilesystem, Workspace } from '@mastra/core/workspace';
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as later } from 'node:timers/promises';
import { outcomes, print } from './report.mjs';

const [directory] = process.argv.slice(2);
const REVIEW = `${directory}/skills/review`;

/** @param {string} place @param {string} name @param {string} description */
function writeSkill(place, name, description) {
  mkdirSync(place, { recursive: true });
  writeFileSync(`${place}/SKILL.md`, `---\nname: ${name}\ndescription: ${description}\n---\nDo it with care.\n`);
}

writeSkill(REVIEW, 'review', 'Reviews code');
for (const kind of ['references', 'scripts', 'assets']) mkdirSync(`${REVIEW}/${kind}`);
writeFileSync(`${REVIEW}/references/style.md`, 'Prefer short names.\n');
writeFileSync(`${REVIEW}/scripts/check.sh`, '#!/bin/sh\nexit 0\n');
writeFileSync(`${REVIEW}/assets/dot.png`, Buffer.from([137, 80, 78, 71]));

/** @param {boolean} checkSkillFileMtime */
async function workspaceOf(checkSkillFileMtime) {
  const workspace = new Workspace({
    filesystem: new LocalFilesystem({ basePath: directory }),
    skills: ['skills'],
    bm25: true,
    checkSkillFileMtime,
  });
  await workspace.init();
  if (workspace.skills === undefined) throw new Error('a workspace with skill paths has skills');
  /** @type {any} */ (workspace.skills.constructor).STALENESS_CHECK_COOLDOWN = 0;
  await workspace.skills.list();
  return workspace.skills;
}

const careful = await workspaceOf(true);
const skills = await workspaceOf(false);
/** @param {typeof skills} of */
const descriptions = async (of) => (await of.list()).map(({ name, description }) => `${name}: ${description}`);

/** Change something in a later millisecond than that of Mastra's last look, and let it look. @param {() => void} change */
async function changed(change, of = skills) {
  const looked = Date.now();
  while (Date.now() <= looked + 10) await later(1); // tmpfs follows a clock of 4 ms
  change();
  await of.maybeRefresh();
  return descriptions(of);
}

print(await outcomes(directory, [
  ['list', () => skills.list()],
  ['get', () => skills.get('review')],
  ['get by path', () => skills.get('skills/review')],
  ['get nothing', () => skills.get('none')],
  ['has', () => skills.has('review')],
  ['search', () => skills.search('short').then((found) => found.map(({ score, ...rest }) => rest))],
  ['reference', () => skills.getReference('review', 'references/style.md')],
  ['reference without its directory', () => skills.getReference('review', 'style.md')],
  ['reference from the root', () => skills.getReference('review', 'skills/review/references/style.md')],
  ['reference outside', () => skills.getReference('review', '../../secret')],
  ['script', () => skills.getScript('review', 'scripts/check.sh')],
  ['asset', () => skills.getAsset('review', 'assets/dot.png')],
  ['lists', async () => [
    await skills.listReferences('review'), await skills.listScripts('review'), await skills.listAssets('review'),
  ]],
  ['nothing has changed', () => changed(() => {})],
  ['rewritten in place', () => changed(() => writeSkill(REVIEW, 'review', 'Reviews prose'), careful)],
  ['replaced by another file', () => changed(() => {
    writeSkill(`${directory}/draft`, 'review', 'Reviews maps');
    renameSync(`${directory}/draft/SKILL.md`, `${REVIEW}/SKILL.md`);
  })],
  ['a second skill', () => changed(() => writeSkill(`${directory}/skills/plan`, 'plan', 'Plans work'))],
  ['a skill renamed', () => changed(() => {
    writeSkill(`${directory}/skills/plan`, 'design', 'Plans work');
    renameSync(`${directory}/skills/plan`, `${directory}/skills/design`);
  })],
  ['a broken skill', () => changed(() => {
    mkdirSync(`${directory}/skills/broken`);
    writeFileSync(`${directory}/skills/broken/SKILL.md`, 'no front matter\n');
  })],
  ['a skill removed', () => changed(() => rmSync(`${directory}/skills/design`, { recursive: true }))],
  ['a new reference', async () => {
    await changed(() => writeFileSync(`${REVIEW}/references/more.md`, 'More.\n'));
    await changed(() => writeSkill(`${directory}/skills/other`, 'other', 'Others'));
    return skills.listReferences('review');
  }],
]));
