/** Fail if this Node is too old. @throws {Error} */
export function checkNode(): void;
/**
 * Load the part of Mastra that has its filesystems.
 * @returns {Promise<MastraWorkspace>}
 * @throws {Error} if it is not installed, too old, or without a class that the client takes from it
 */
export function mastraWorkspace(): Promise<MastraWorkspace>;
export type MastraWorkspace = typeof import("@mastra/core/workspace");
