// Importing this file first checks the version of Node before the packages that need it are loaded.
import { assertNodeVersion } from './node-version.ts'

assertNodeVersion()
