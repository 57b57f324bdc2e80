// For users' own tests: time that passes when told to, and the suite that says what a store must do.
export { storeConformance } from '../store/conformance/index.ts'
export type { Harness, Runner } from '../store/conformance/harness.ts'
export { testApp, type TestApp, type TestOptions, type TestRun } from './test-app.ts'
export { VirtualClock } from './virtual-clock.ts'
