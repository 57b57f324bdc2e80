// One side of the deliver bench in a process of its own. Arguments: side, work as JSON. It reports when it is ready, runs on a
// message from its parent, reports what the run took, and ends when the parent does.
import { sides, type SideName, type Work } from './sides.ts'

export interface Took {
  readonly millis: number
  /** CPU time of all threads of this process. */
  readonly cpuMicros: number
}

const [name = '', work = '{}'] = process.argv.slice(2)
process.once('disconnect', () => process.exit())
const { run, close } = await sides[name as SideName](JSON.parse(work) as Work)

async function took(): Promise<Took> {
  const [began, before] = [performance.now(), process.cpuUsage()]
  await run()
  const { user, system } = process.cpuUsage(before)
  return { millis: performance.now() - began, cpuMicros: user + system }
}

process.once('message', () => {
  void (async () => {
    process.send?.(await took())
    await close()
    process.exit()
  })()
})
process.send?.({ ready: true })
