/**
 * The mount of this example: a scope in SQLite, mounted below a temporary directory. Its daemon can be killed and started
 * again, as after a failure of the host. At the end everything is removed.
 */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The command line of vfsd, such as `.venv/bin/vfsd`. */
const VFSD = (process.env.VFSD ?? 'vfsd').split(' ');

export class Mount {
  #directory = mkdtempSync(join(tmpdir(), 'vfsd-example-'));
  #started = false;
  path = join(this.#directory, 'mnt');

  /** Mount, and return when the files can be read. */
  start() {
    this.#vfsd('mount', this.path, '--scope', 'example', '--log-file', join(this.#directory, 'log'));
    this.#started = true;
  }

  /** End the daemon as in a crash. */
  kill() {
    const { pid } = JSON.parse(this.#vfsd('status', '--json')).find(
      (/** @type {{ mountpoint: string }} */ mount) => mount.mountpoint === this.path,
    );
    process.kill(pid, 'SIGKILL');
  }

  /** Unmount and remove all files. */
  remove() {
    if (this.#started) this.#vfsd('umount', this.path);
    rmSync(this.#directory, { recursive: true });
  }

  /** @param {string[]} arguments_ */
  #vfsd(...arguments_) {
    const env = { ...process.env, VFSD_STORE: `sqlite:${join(this.#directory, 'vfsd.db')}` };
    try {
      return execFileSync(VFSD[0], [...VFSD.slice(1), ...arguments_], { env, encoding: 'utf-8', stdio: ['ignore', 'pipe', 'inherit'] });
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ENOENT') throw error;
      throw new Error(`there is no command ${VFSD[0]}: put vfsd on the PATH, or name it in VFSD (VFSD=.venv/bin/vfsd)`);
    }
  }
}
