// The two file systems of Mastra that these programs use: `local DIRECTORY` and `vfsd MOUNTPOINT`.

import { LocalFilesystem } from '@mastra/core/workspace';
import { VfsdFilesystem } from 'vfsd';

/**
 * @param {string} kind
 * @param {string} directory
 * @param {Partial<import('@mastra/core/workspace').LocalFilesystemOptions>} [options]
 * @returns {LocalFilesystem}
 */
export function filesystem(kind, directory, options = {}) {
  if (kind === 'vfsd') return new VfsdFilesystem({ ...options, mountpoint: directory });
  return new LocalFilesystem({ ...options, basePath: directory });
}
