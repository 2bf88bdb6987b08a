declare const VfsdFilesystem_base: typeof import("@mastra/core/workspace").LocalFilesystem;
/** @typedef {import('@mastra/core/workspace').FileContent} FileContent */
/** @typedef {import('@mastra/core/workspace').FileStat} FileStat */
/** @typedef {import('@mastra/core/workspace').WriteOptions} WriteOptions */
/**
 * @typedef {object} VfsdOnly
 * @property {string} mountpoint where the scope is mounted
 * @property {number} [timeoutMs] how long (ms) the daemon may take to answer
 */
/** @typedef {Omit<import('@mastra/core/workspace').LocalFilesystemOptions, 'basePath'> & VfsdOnly} VfsdFilesystemOptions */
export class VfsdFilesystem extends VfsdFilesystem_base {
    /** @param {VfsdFilesystemOptions} options */
    constructor({ mountpoint, timeoutMs, ...options }: VfsdFilesystemOptions);
    /**
     * Put a file into the tree that is never stored: it is there until the mount ends, or a stored one takes its place.
     * @param {string} path
     * @param {FileContent} content
     * @param {{ mode?: number }} [options] permission bits; 0o644 by default
     * @returns {Promise<boolean>} false if the same content was seeded already
     */
    seedFile(path: string, content: FileContent, { mode }?: {
        mode?: number;
    }): Promise<boolean>;
    /**
     * Seed a whole skill in one step, in place of what was seeded there.
     * @param {string} dir such as `skills/review`
     * @param {FileContent} skillMd its SKILL.md
     * @param {Record<string, FileContent>} [references] what is in its `references`, by name
     * @param {{ files?: Record<string, FileContent>, modes?: Record<string, number> }} [options] anything else, by path
     *   below `dir`, and permissions by that path (0o755 for a script); 0o644 by default
     * @returns {Promise<boolean>} false if the same skill was seeded already
     */
    seedSkill(dir: string, skillMd: FileContent, references?: Record<string, FileContent>, { files, modes }?: {
        files?: Record<string, FileContent>;
        modes?: Record<string, number>;
    }): Promise<boolean>;
    /** Return every file, seeded or stored, relative to the root, sorted. @returns {Promise<string[]>} */
    listAllPaths(): Promise<string[]>;
    /** Return when all that was written is as safe as fsync makes it. */
    flush(): Promise<void>;
    /** Delete all that the scope has stored, for good, and unmount. */
    destroyPersisted(): Promise<void>;
    #private;
}
export type FileContent = import("@mastra/core/workspace").FileContent;
export type FileStat = import("@mastra/core/workspace").FileStat;
export type WriteOptions = import("@mastra/core/workspace").WriteOptions;
export type VfsdOnly = {
    /**
     * where the scope is mounted
     */
    mountpoint: string;
    /**
     * how long (ms) the daemon may take to answer
     */
    timeoutMs?: number | undefined;
};
export type VfsdFilesystemOptions = Omit<import("@mastra/core/workspace").LocalFilesystemOptions, "basePath"> & VfsdOnly;
import { ControlClient } from './control.mjs';
import { VfsdError } from './control.mjs';
export { ControlClient, VfsdError };
