/**
 * A client of the control socket beside a vfsd mount: one JSON object a line, many requests in flight at once.
 *
 * It exists for what a path cannot say; files are read and written through the mount. It must never retry a request
 * by itself: when an answer does not come, only the caller can know whether doing it twice does harm.
 * docs/control.md is the protocol. An old Node cannot read integers of 64 bits from JSON, so it is refused.
 */

import { createHash } from 'node:crypto';
import { lstat, realpath } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { isAbsolute, join } from 'node:path';
import { checkNode } from './requirements.mjs';

checkNode();

const VERSION = 1;
const LINE_MAX = 96 * 2 ** 20;
const TIMEOUT_MS = 30_000;
const NEWLINE = 10;
const WRITABLE_BY_OTHERS = 0o022;

/**
 * What a daemon refused, or why it could not be asked.
 * `code` is the name of an errno, and what programs decide by: `ENOTCONN` when nobody listens at the mountpoint,
 * `EPERM` when somebody else may have made the directory of the sockets,
 * `ECONNRESET` when the daemon went away and `ETIMEDOUT` when it said nothing in time: then it is not known whether
 * the request was carried out. `details` has the further members of the daemon's error, such as `path`.
 */
export class VfsdError extends Error {
  /** @param {string} code @param {string} message @param {Record<string, any>} [details] */
  constructor(code, message, details = {}) {
    super(message);
    this.name = 'VfsdError';
    this.code = code;
    this.details = details;
  }
}

/** A connection to the daemon of one mount, made with the first request and again after it was lost. */
export class ControlClient {
  /** @type {Promise<Connection> | undefined} */
  #connection;
  #lastId = 0;
  #mountpoint;
  #timeoutMs;

  /**
   * @param {string} mountpoint
   * @param {{ timeoutMs?: number }} [options] how long (ms) a request may take if it does not say so itself
   */
  constructor(mountpoint, { timeoutMs = TIMEOUT_MS } = {}) {
    this.#mountpoint = mountpoint;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Return the result of `op`. Members called `…_ns` are times in nanoseconds, as bigint both ways.
   * @param {string} op
   * @param {Record<string, unknown>} [arguments_] binary content in base64; what is undefined is left out
   * @param {{ timeoutMs?: number }} [options]
   * @returns {Promise<any>}
   * @throws {VfsdError}
   */
  async request(op, arguments_ = {}, { timeoutMs = this.#timeoutMs } = {}) {
    const id = ++this.#lastId;
    const line = encoded({ ...arguments_, v: VERSION, id, op });
    if (line.length > LINE_MAX) {
      throw new VfsdError('EMSGSIZE', `${op}: ${line.length} bytes; a request may have ${LINE_MAX}: write through the mount`);
    }
    const connection = await this.#connected();
    return connection.ask(id, op, line, timeoutMs);
  }

  /** Hang up. Requests that wait are rejected; the next one connects anew. */
  async close() {
    const connection = this.#connection;
    this.#connection = undefined;
    await connection?.then((connected) => connected.end(), () => undefined);
  }

  #connected() {
    if (this.#connection !== undefined) return this.#connection;
    const made = this.#connect(() => {
      if (this.#connection === made) this.#connection = undefined;
    });
    this.#connection = made;
    return made;
  }

  /** @param {() => void} forget called when the connection is of no use any more */
  async #connect(forget) {
    try {
      const socket = await connectedTo(await socketPath(this.#mountpoint));
      socket.on('close', forget);
      return new Connection(socket, this.#mountpoint);
    } catch (error) {
      forget();
      if (error instanceof VfsdError) throw error;
      throw new VfsdError('ENOTCONN', `no vfsd mount answers at ${this.#mountpoint} (${reason(error)}): mount it, or see VFSD_RUNTIME_DIR`);
    }
  }
}

/** @typedef {{ op: string, resolve: (result: any) => void, reject: (error: Error) => void, timer: NodeJS.Timeout }} Waiting */

/** One connection, and who waits for an answer on it. It keeps a program alive only while somebody does. */
class Connection {
  /** @type {Map<number, Waiting>} */
  #waiting = new Map();
  /** @type {number[]} what was asked and not answered, oldest first: answers come in this order, also late ones */
  #asked = [];
  /** @type {Buffer[]} the pieces of a line that has not ended */
  #pieces = [];
  #mountpoint;
  #socket;
  #why = '';

  /** @param {import('node:net').Socket} socket @param {string} mountpoint */
  constructor(socket, mountpoint) {
    this.#socket = socket;
    this.#mountpoint = mountpoint;
    socket.on('data', (received) => this.#take(received));
    socket.on('error', (error) => {
      this.#why = `: ${error.message}`; // 'close' follows, and tells those who wait
    });
    socket.on('close', () => this.#lost());
  }

  /** @param {number} id @param {string} op @param {Buffer} line @param {number} timeoutMs @returns {Promise<any>} */
  ask(id, op, line, timeoutMs) {
    return new Promise((resolve, reject) => {
      const late = () => this.#settle(id, new VfsdError('ETIMEDOUT', `${op}: no answer from ${this.#mountpoint} within ${timeoutMs} ms`));
      this.#waiting.set(id, { op, resolve, reject, timer: setTimeout(late, timeoutMs) });
      if (this.#socket.closed) return this.#lost();
      this.#socket.ref();
      this.#asked.push(id);
      this.#socket.write(line);
    });
  }

  end() {
    this.#socket.destroy();
  }

  #lost() {
    for (const [id, { op }] of this.#waiting) {
      this.#settle(id, new VfsdError('ECONNRESET', `${op}: the daemon of ${this.#mountpoint} went away before it answered${this.#why}`));
    }
  }

  /** @param {Buffer} received */
  #take(received) {
    let rest = received;
    for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
      const line = Buffer.concat([...this.#pieces, rest.subarray(0, end)]).toString();
      this.#pieces = [];
      rest = rest.subarray(end + 1);
      this.#answered(line);
    }
    if (rest.length > 0) this.#pieces.push(rest);
  }

  /** @param {string} line */
  #answered(line) {
    try {
      const { ok, result, error } = decoded(line);
      const id = this.#asked.shift(); // a request that was refused unread is answered without its id
      if (id === undefined) throw new Error('nothing was asked');
      this.#settle(id, ok ? undefined : new VfsdError(error.code, error.message, error), result);
    } catch (error) {
      this.#socket.destroy(new Error(`its answer is not of this protocol (${reason(error)})`));
    }
  }

  /** An answer nobody waits for any more came too late. @param {number} id @param {Error} [error] @param {unknown} [result] */
  #settle(id, error, result) {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#waiting.delete(id);
    clearTimeout(waiting.timer);
    if (this.#waiting.size === 0) this.#socket.unref();
    if (error === undefined) waiting.resolve(result);
    else waiting.reject(error);
  }
}

/** @param {string} path @returns {Promise<import('node:net').Socket>} */
function connectedTo(path) {
  return new Promise((resolve, reject) => {
    const socket = createConnection(path, () => {
      socket.off('error', reject);
      resolve(socket);
    });
    socket.once('error', reject);
  });
}

/** @param {unknown} error */
function reason(error) {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Return where the daemon that serves `mountpoint` listens.
 * @param {string} mountpoint
 * @returns {Promise<string>}
 * @throws {VfsdError} EPERM, where somebody else may have made the directory of the socket
 */
export async function socketPath(mountpoint) {
  const name = createHash('sha256').update(await realpath(mountpoint)).digest('hex').slice(0, 16);
  const directory = runtimeDirectory();
  await checkTrust(directory);
  return join(directory, `${name}.sock`);
}

/**
 * Fail if somebody else may have made what lies in `directory`, which may be below /tmp: he would be handed what is
 * written. Node cannot ask a socket for the user at its other end, so the directory has to do.
 * @param {string} directory
 */
async function checkTrust(directory) {
  const found = await lstat(directory);
  const isOurs = found.uid === 0 || found.uid === process.geteuid?.();
  if (!found.isDirectory() || !isOurs || (found.mode & WRITABLE_BY_OTHERS) !== 0) {
    throw new VfsdError('EPERM', `${directory} must be a directory that belongs to this user alone: remove it, or set VFSD_RUNTIME_DIR`);
  }
}

function runtimeDirectory() {
  const { VFSD_RUNTIME_DIR: given, XDG_RUNTIME_DIR: own = '' } = process.env;
  if (given) return given;
  const user = process.geteuid?.();
  if (user === 0) return '/run/vfsd';
  return isAbsolute(own) ? join(own, 'vfsd') : `/tmp/vfsd-${user}`;
}

/** @param {Record<string, unknown>} request @returns {Buffer} */
function encoded(request) {
  // rawJSON writes an integer of any length; the compiler's library does not know it yet
  const { rawJSON } = /** @type {any} */ (JSON);
  return Buffer.from(`${JSON.stringify(request, (_, value) => (typeof value === 'bigint' ? rawJSON(String(value)) : value))}\n`);
}

/** @param {string} line @returns {any} */
function decoded(line) {
  /** @type {(key: string, value: unknown, context: { source: string }) => unknown} */
  const exact = (key, value, { source }) => (key.endsWith('_ns') && typeof value === 'number' ? BigInt(source) : value);
  return JSON.parse(line, /** @type {any} */ (exact));
}
