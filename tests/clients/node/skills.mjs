// Mastra finds skills below `skills/`, reads them and notices their changes: DIRECTORY, an empty one. Mastra checks for
// changes once in 30 s at most. This program removes the limit, so that Mastra can check at any time.

import { LocalFilesystem, Workspace } from '@mastra/core/workspace';
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { outcomes, print } from './report.mjs';

const [directory] = process.argv.slice(2);
const REVIEW = `${directory}/skills/review`;

/** @param {string} path @param {string} name @param {string} description */
function writeSkill(path, name, description) {
  mkdirSync(path, { recursive: true });
  writeFileSync(`${path}/SKILL.md`, `---\nname: ${name}\ndescription: ${description}\n---\nDo it with care.\n`);
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

const checksFiles = await workspaceOf(true);
const skills = await workspaceOf(false);
/** @param {typeof skills} of */
const descriptions = async (of) => (await of.list()).map(({ name, description }) => `${name}: ${description}`);

/** Change something at least one millisecond after Mastra's last check, and let Mastra check again. @param {() => void} change */
async function changed(change, of = skills) {
  const checked = Date.now();
  while (Date.now() <= checked + 10) await delay(1); // the clock of tmpfs advances every 4 ms
  change();
  await of.maybeRefresh();
  return descriptions(of);
}

print(await outcomes(directory, [
  ['list', () => skills.list()],
  ['get', () => skills.get('review')],
  ['get by path', () => skills.get('skills/review')],
  ['get a missing skill', () => skills.get('none')],
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
  ['rewritten in place', () => changed(() => writeSkill(REVIEW, 'review', 'Reviews prose'), checksFiles)],
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
