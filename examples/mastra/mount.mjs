/**
 * A scope of this program's own: a mount below a temporary directory, kept in SQLite beside it. It can be killed and
 * made again, as a host would lose and restart it. Nothing of it is left at the end.
 */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The command line of vfsd, such as `.venv/bin/vfsd`. */
const VFSD = (process.env.VFSD ?? 'vfsd').split(' ');

export class Mount {
  #place = mkdtempSync(join(tmpdir(), 'vfsd-example-'));
  #started = false;
  path = join(this.#place, 'mnt');

  /** Mount, and return when the files are there. */
  start() {
    this.#vfsd('mount', this.path, '--scope', 'example', '--log-file', join(this.#place, 'log'));
    this.#started = true;
  }

  /** End the daemon as a crash would. */
  kill() {
    const { pid } = JSON.parse(this.#vfsd('status', '--json')).find(
      (/** @type {{ mountpoint: string }} */ mount) => mount.mountpoint === this.path,
    );
    process.kill(pid, 'SIGKILL');
  }

  /** Unmount and leave nothing behind. */
  remove() {
    if (this.#started) this.#vfsd('umount', this.path);
    rmSync(this.#place, { recursive: true });
  }

  /** @param {string[]} arguments_ */
  #vfsd(...arguments_) {
    const env = { ...process.env, VFSD_STORE: `sqlite:${join(this.#place, 'vfsd.db')}` };
    try {
      return execFileSync(VFSD[0], [...VFSD.slice(1), ...arguments_], { env, encoding: 'utf-8', stdio: ['ignore', 'pipe', 'inherit'] });
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ENOENT') throw error;
      throw new Error(`there is no command ${VFSD[0]}: put vfsd on the PATH, or name it in VFSD (VFSD=.venv/bin/vfsd)`);
    }
  }
}
