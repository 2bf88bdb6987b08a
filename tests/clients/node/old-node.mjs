// Loaded before a program: it takes this Node for the version that VFSD_TEST_NODE names.

const { VFSD_TEST_NODE: node = '' } = process.env;
Object.defineProperty(process, 'version', { value: `v${node}` });
Object.defineProperty(process, 'versions', { value: { ...process.versions, node } });
