// Checks the version of Node before anything needs it. An older Node would fail later, with an error that names a missing
// module or function instead of the cause.
import { SluiceError } from '../errors.ts'

/** `MIN_NODE` is the oldest version that Sluice runs on. package.json has the same version under `engines`. */
export const MIN_NODE = '22.19'

export function assertNodeVersion(version: string = process.versions.node): void {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [minMajor = 0, minMinor = 0] = MIN_NODE.split('.').map(Number)
  if (major > minMajor || (major === minMajor && minor >= minMinor)) return
  throw new SluiceError('NODE_TOO_OLD', `Sluice needs Node ${MIN_NODE} or later; this is ${version}.`)
}
