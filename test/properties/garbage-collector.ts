// The collector of this process, to be called when it has to have run.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

export function garbageCollector(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
}
