/**
 * A vfsd mount as a filesystem of a Mastra workspace.
 *
 * Files are files: every method, guard and error class is that of Mastra's own LocalFilesystem on the mountpoint. Added
 * is what only the daemon can do: seeds, the list of all files, dropping what is stored, and a write that compares and
 * replaces in one step. It must never write where no mount is: what lands on the bare disk below is lost to the run.
 */

import { stat } from 'node:fs/promises';
import { relative, sep } from 'node:path';
import { ControlClient, VfsdError } from './control.mjs';
import { mastraWorkspace } from './requirements.mjs';

export { ControlClient, VfsdError };

// A static import would fail before anything here could say why.
const { FileExistsError, LocalFilesystem, StaleFileError } = await mastraWorkspace();

/**
 * What the daemon answers where there is no file to compare: no such place, not a file, a link that leads out of the
 * scope, or more content than one step can carry. There Mastra's own way decides, and its own error is thrown.
 * @type {Set<string | undefined>}
 */
const NOT_FOR_THE_DAEMON = new Set(['ENOENT', 'ENOTDIR', 'EISDIR', 'ELOOP', 'ENAMETOOLONG', 'EXDEV', 'EFBIG', 'EMSGSIZE']);

/** How many handed out times are remembered: of so many files, those that were looked at last. */
const REMEMBERED = 10_000;

/** @typedef {import('@mastra/core/workspace').FileContent} FileContent */
/** @typedef {import('@mastra/core/workspace').FileStat} FileStat */
/** @typedef {import('@mastra/core/workspace').WriteOptions} WriteOptions */

/**
 * @typedef {object} VfsdOnly
 * @property {string} mountpoint where the scope is mounted
 * @property {number} [timeoutMs] how long (ms) the daemon may take to answer
 */

/** @typedef {Omit<import('@mastra/core/workspace').LocalFilesystemOptions, 'basePath'> & VfsdOnly} VfsdFilesystemOptions */

export class VfsdFilesystem extends LocalFilesystem {
  #control;
  /** The nanoseconds behind the times that `stat` has handed out, by absolute path. @type {Map<string, bigint>} */
  #handedOut = new Map();

  /** @param {VfsdFilesystemOptions} options */
  constructor({ mountpoint, timeoutMs, ...options }) {
    super({ ...options, basePath: mountpoint });
    this.#control = new ControlClient(this.basePath, { timeoutMs });
  }

  /** Fail unless the mount is there. @override @throws {VfsdError} ENOTCONN */
  async init() {
    await this.#control.request('info');
  }

  /** Hang up; the mount and its files stay. @override */
  async destroy() {
    await this.#control.close();
  }

  /**
   * As LocalFilesystem's. Its times are in milliseconds, and a file may change twice in one. So this remembers the exact
   * time, for `expectedMtime`. It is read first: of a change in between, `writeFile` then knows.
   * @override
   * @param {string} inputPath
   * @returns {Promise<FileStat>}
   */
  async stat(inputPath) {
    const path = this.resolveAbsolutePath(inputPath);
    const exact = path === undefined ? undefined : await stat(path, { bigint: true }).catch(() => undefined);
    const found = await super.stat(inputPath);
    if (path !== undefined && exact !== undefined) this.#remember(path, exact.mtimeNs);
    return found;
  }

  /** @param {string} path @param {bigint} ns */
  #remember(path, ns) {
    this.#handedOut.delete(path);
    this.#handedOut.set(path, ns);
    for (const oldest of this.#handedOut.keys()) {
      if (this.#handedOut.size <= REMEMBERED) break;
      this.#handedOut.delete(oldest);
    }
  }

  /**
   * As LocalFilesystem's, but with `expectedMtime` nobody can change the file between the comparison and the write,
   * and readers see the old file or the new one, never a part. Up to 64 MiB, that is: more than one step can carry
   * goes LocalFilesystem's way.
   * @override
   * @param {string} inputPath
   * @param {FileContent} content
   * @param {WriteOptions} [options]
   */
  async writeFile(inputPath, content, options) {
    const path = this.resolveAbsolutePath(inputPath);
    if (!options?.expectedMtime || this.readOnly || path === undefined || !path.startsWith(this.basePath + sep)) {
      return super.writeFile(inputPath, content, options);
    }
    await this.ensureReady();
    const place = relative(this.basePath, path); // the daemon may know the mountpoint by another name
    try {
      const exact = this.#handedOut.get(path);
      while (!(await this.#compareAndWrite(place, inputPath, content, options, options.expectedMtime, exact)));
    } catch (error) {
      if (!NOT_FOR_THE_DAEMON.has(codeOf(error))) throw error;
      await super.writeFile(inputPath, content, options);
    }
  }

  /**
   * Put a file into the tree that is never stored: it is there until the mount ends, or a stored one takes its place.
   * @param {string} path
   * @param {FileContent} content
   * @param {{ mode?: number }} [options] permission bits; 0o644 by default
   * @returns {Promise<boolean>} false if the same content was seeded already
   */
  async seedFile(path, content, { mode } = {}) {
    const { changed } = await this.#ask('seed_file', { path, data: base64(content), mode });
    return changed;
  }

  /**
   * Seed a whole skill in one step, in place of what was seeded there.
   * @param {string} dir such as `skills/review`
   * @param {FileContent} skillMd its SKILL.md
   * @param {Record<string, FileContent>} [references] what is in its `references`, by name
   * @param {{ files?: Record<string, FileContent>, modes?: Record<string, number> }} [options] anything else, by path
   *   below `dir`, and permissions by that path (0o755 for a script); 0o644 by default
   * @returns {Promise<boolean>} false if the same skill was seeded already
   */
  async seedSkill(dir, skillMd, references = {}, { files = {}, modes } = {}) {
    const named = Object.entries(references).map(([name, content]) => [`references/${name}`, content]);
    const given = { ...files, ...Object.fromEntries(named), 'SKILL.md': skillMd };
    const encoded = Object.fromEntries(Object.entries(given).map(([path, content]) => [path, base64(content)]));
    const { changed } = await this.#ask('seed_skill', { dir, files: encoded, modes });
    return changed;
  }

  /** Return every file, seeded or stored, relative to the root, sorted. @returns {Promise<string[]>} */
  async listAllPaths() {
    const { paths } = await this.#ask('list_all_paths');
    return paths;
  }

  /** Return when all that was written is as safe as fsync makes it. */
  async flush() {
    await this.#ask('flush');
  }

  /** Delete all that the scope has stored, for good, and unmount. */
  async destroyPersisted() {
    await this.#ask('destroy');
    await this.#control.close();
  }

  /** @param {string} op @param {Record<string, unknown>} [arguments_] @returns {Promise<any>} */
  async #ask(op, arguments_) {
    await this.ensureReady();
    return this.#control.request(op, arguments_);
  }

  /**
   * Return whether it was written; false says that the file was made, changed or removed meanwhile: look again.
   * @param {string} path relative to the mountpoint
   * @param {string} inputPath as given
   * @param {FileContent} content
   * @param {WriteOptions} options
   * @param {Date} expected
   * @param {bigint | undefined} exact the time (ns) that was last handed out for the file
   */
  async #compareAndWrite(path, inputPath, content, options, expected, exact) {
    const found = await this.#modified(path);
    if (found !== null && !isSame(found, expected, exact)) throw new StaleFileError(inputPath, expected, shown(found));
    if (found !== null && options.overwrite === false) throw new FileExistsError(inputPath);
    const condition = found === null ? { create_only: true } : { expected_mtime_ns: found };
    const parents = options.recursive !== false;
    try {
      await this.#control.request('write_file', { path, data: base64(content), parents, ...condition });
    } catch (error) {
      if (codeOf(error) === 'ESTALE' || codeOf(error) === 'EEXIST') return false;
      throw error;
    }
    return true;
  }

  /** Return when (ns) a file was modified, or null if there is none. @param {string} path @returns {Promise<bigint | null>} */
  async #modified(path) {
    try {
      return (await this.#control.request('stat', { path })).mtime_ns;
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return null;
      throw error;
    }
  }
}

/** @param {unknown} error */
function codeOf(error) {
  return error instanceof VfsdError ? error.code : undefined;
}

/**
 * Return a time as `Stats.mtime` of node:fs shows it: to the nearest millisecond, not cut off. Mastra compares those.
 * @param {bigint} ns
 */
function shown(ns) {
  const second = 1_000_000_000n;
  return new Date(Math.round(Number(ns / second) * 1e3 + Number(ns % second) / 1e6));
}

/**
 * Return whether a file that was modified at *found* is as the caller has seen it. If *exact* is what the caller's time
 * stands for, it decides.
 * @param {bigint} found
 * @param {Date} expected
 * @param {bigint | undefined} exact
 */
function isSame(found, expected, exact) {
  if (exact !== undefined && shown(exact).getTime() === expected.getTime()) return found === exact;
  return shown(found).getTime() === expected.getTime();
}

/** @param {FileContent} content */
function base64(content) {
  return Buffer.from(/** @type {any} */ (content)).toString('base64');
}
