// The garbage collector of this process, for tests that need a collection.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

export function garbageCollector(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
}
