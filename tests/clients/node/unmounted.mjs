// A filesystem at a directory that is not a mount: DIRECTORY.

import { VfsdFilesystem } from 'vfsd';
import { outcomes, print } from './report.mjs';

const [mountpoint] = process.argv.slice(2);
const filesystem = new VfsdFilesystem({ mountpoint });
print(await outcomes(mountpoint, [['write', () => filesystem.writeFile('a.md', 'lost')]]));
