// Drop everything that a scope has stored, and end its mount: MOUNTPOINT. Prints the paths of its files.

import { VfsdFilesystem } from 'vfsd';
import { print } from './report.mjs';

const [mountpoint] = process.argv.slice(2);
const filesystem = new VfsdFilesystem({ mountpoint });
print(await filesystem.listAllPaths());
await filesystem.destroyPersisted();
