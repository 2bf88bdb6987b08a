/**
 * Return where the daemon that serves `mountpoint` listens.
 * @param {string} mountpoint
 * @returns {Promise<string>}
 * @throws {VfsdError} EPERM, where somebody else may have made the directory of the socket
 */
export function socketPath(mountpoint: string): Promise<string>;
/**
 * What a daemon refused, or why it could not be asked.
 * `code` is the name of an errno, and what programs decide by: `ENOTCONN` when nobody listens at the mountpoint,
 * `EPERM` when somebody else may have made the directory of the sockets,
 * `ECONNRESET` when the daemon went away and `ETIMEDOUT` when it said nothing in time: then it is not known whether
 * the request was carried out. `details` has the further members of the daemon's error, such as `path`.
 */
export class VfsdError extends Error {
    /** @param {string} code @param {string} message @param {Record<string, any>} [details] */
    constructor(code: string, message: string, details?: Record<string, any>);
    code: string;
    details: Record<string, any>;
}
/** A connection to the daemon of one mount, made with the first request and again after it was lost. */
export class ControlClient {
    /**
     * @param {string} mountpoint
     * @param {{ timeoutMs?: number }} [options] how long (ms) a request may take if it does not say so itself
     */
    constructor(mountpoint: string, { timeoutMs }?: {
        timeoutMs?: number;
    });
    /**
     * Return the result of `op`. Members called `…_ns` are times in nanoseconds, as bigint both ways.
     * @param {string} op
     * @param {Record<string, unknown>} [arguments_] binary content in base64; what is undefined is left out
     * @param {{ timeoutMs?: number }} [options]
     * @returns {Promise<any>}
     * @throws {VfsdError}
     */
    request(op: string, arguments_?: Record<string, unknown>, { timeoutMs }?: {
        timeoutMs?: number;
    }): Promise<any>;
    /** Hang up. Requests that wait are rejected; the next one connects anew. */
    close(): Promise<void>;
    #private;
}
export type Waiting = {
    op: string;
    resolve: (result: any) => void;
    reject: (error: Error) => void;
    timer: NodeJS.Timeout;
};
