// Times claims among a number of waiting lanes, in a process of its own, because only then is its memory meaningful.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { quantile } from './figures.ts'
import type { ClaimTimes } from './results.ts'
import type { DueOrder, SubjectModule } from './sides.ts'
import { findSubject } from './subject.ts'

const LANES_PER_CLAIM = 10
// This takes half of the smallest store, so that its claims still find as many lanes as they ask for.
const CLAIMS = 50
const WARM_UP_LANES = 2000
const WARM_UP_CLAIMS = 150

async function claimMicros(
  subject: SubjectModule,
  folder: string,
  lanes: number,
  due: DueOrder,
  claims: number,
): Promise<readonly number[]> {
  await mkdir(folder)
  const side = await subject.openLanes(folder)
  try {
    await side.fill(lanes, due)
    const micros: number[] = []
    for (let claim = 0; claim < claims; claim += 1) {
      const started = performance.now()
      const claimed = await side.claim(LANES_PER_CLAIM)
      micros.push((performance.now() - started) * 1000)
      if (claimed !== LANES_PER_CLAIM) throw new Error(`Claim ${claim} of ${lanes} lanes got ${claimed}.`)
    }
    return micros
  } finally {
    await side.close()
  }
}

async function probe(folder: string, lanes: number, due: DueOrder): Promise<ClaimTimes> {
  const subject = await findSubject()
  if (subject === undefined) throw new Error('There is no bench/sluice.ts to probe.')
  // Without a warm-up, uncompiled code would make the small store look slow, and the large one fast in comparison.
  await claimMicros(subject, join(folder, 'warm-up'), WARM_UP_LANES, due, WARM_UP_CLAIMS)
  const micros = await claimMicros(subject, join(folder, 'lanes'), lanes, due, CLAIMS)
  const sorted = micros.toSorted((one, other) => one - other)
  return {
    lanes,
    due,
    claims: CLAIMS,
    medianMicros: quantile(sorted, 0.5),
    meanMicros: micros.reduce((sum, one) => sum + one, 0) / micros.length,
    p95Micros: quantile(sorted, 0.95),
    peakMegabytes: process.resourceUsage().maxRSS / 1000,
  }
}

const [folder = '', lanes, due] = process.argv.slice(2)
console.log(JSON.stringify(await probe(folder, Number(lanes), due === 'random' ? 'random' : 'arrival')))
