// All that a scope has stored is dropped, for good, and its mount ends: MOUNTPOINT. Prints what was there.

import { VfsdFilesystem } from 'vfsd';
import { print } from './report.mjs';

const [mountpoint] = process.argv.slice(2);
const filesystem = new VfsdFilesystem({ mountpoint });
print(await filesystem.listAllPaths());
await filesystem.destroyPersisted();
