/**
 * What the client runs on: the Node and the Mastra that package.json names, and one line for whoever has another.
 *
 * Node itself would only say that a package or an export is missing, and on an old Node that much later. This must never
 * refuse what it does not know: in a bundle this package's package.json is gone, and whoever made the bundle had it.
 */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

/** @typedef {typeof import('@mastra/core/workspace')} MastraWorkspace */

/** What the client takes from Mastra. @type {(keyof MastraWorkspace)[]} */
const TAKEN = ['FileExistsError', 'LocalFilesystem', 'StaleFileError'];

const { node: leastNode, mastra: leastMastra } = required();

/** Fail if this Node is too old. @throws {Error} */
export function checkNode() {
  if (leastNode === undefined || !isOlder(process.versions.node, leastNode)) return;
  throw new Error(`vfsd needs Node ${leastNode} or newer, but this is ${process.version}: run the program with a newer Node`);
}

/**
 * Load the part of Mastra that has its filesystems.
 * @returns {Promise<MastraWorkspace>}
 * @throws {Error} if it is not installed, too old, or without a class that the client takes from it
 */
export async function mastraWorkspace() {
  if (leastMastra !== undefined) checkMastra(leastMastra);
  const workspace = await import('@mastra/core/workspace');
  const missing = TAKEN.filter((name) => !(name in workspace));
  if (leastMastra !== undefined && missing.length > 0) throw unfit(leastMastra, `the installed one has no ${missing.join(', ')}`);
  return workspace;
}

/** @param {string} least */
function checkMastra(least) {
  try {
    const { version } = createRequire(import.meta.url)('@mastra/core/package.json');
    if (isOlder(version, least)) throw unfit(least, `version ${version} is installed`);
  } catch (error) {
    if (codeOf(error) === 'MODULE_NOT_FOUND') throw unfit(least, `it is not installed where ${dirname(fileURLToPath(import.meta.url))} could find it`);
    if (codeOf(error) === 'ERR_PACKAGE_PATH_NOT_EXPORTED') throw unfit(least, 'the installed one is older'); // it hides its version
    throw error;
  }
}

/** @param {string} least @param {string} why */
function unfit(least, why) {
  const remedy = `run npm install '@mastra/core@>=${least}' in your project, and install vfsd there with install-links=true in .npmrc`;
  return new Error(`vfsd needs @mastra/core ${least} or newer, but ${why}: ${remedy}`);
}

/** @param {unknown} error */
function codeOf(error) {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

/**
 * Return the oldest versions that package.json allows, or nothing where there is none of this package.
 * @returns {{ node?: string, mastra?: string }}
 */
function required() {
  try {
    const { name, engines, peerDependencies } = JSON.parse(readFileSync(new URL('./package.json', import.meta.url), 'utf8'));
    return name === 'vfsd' ? { node: engines.node.slice(2), mastra: peerDependencies['@mastra/core'].slice(2) } : {};
  } catch {
    return {};
  }
}

/** Return whether a version such as 20.11.1 is older than *least*, which may be shorter. @param {string} version @param {string} least */
function isOlder(version, least) {
  const [has, needs] = [version, least].map((text) => text.split('.').map((part) => Number.parseInt(part, 10)));
  const place = needs.findIndex((number, index) => number !== has[index]);
  return place >= 0 && has[place] < needs[place];
}
