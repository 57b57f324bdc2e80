// The entry point `sluice/testing`: `testApp` runs an app under a virtual clock.
// oxlint-disable-next-line import/no-unassigned-import -- it checks the version of Node before the packages below are loaded
import '../validate/require-node.ts'
export { testApp, type TestApp, type TestOptions, type TestRun } from './test-app.ts'
export type { TestFetch } from './outgoing.ts'
export { VirtualClock } from './virtual-clock.ts'
