// A watcher of a receiving server: an open stream, and a scrape of the metrics per second.
import { setTimeout as sleep } from 'node:timers/promises'

export interface Watcher {
  /** How many entries arrived; throws if the server sent none. */
  end(): Promise<Watched>
}

interface Watched {
  readonly changes: number
  readonly scrapes: number
}

const SCRAPE_EVERY = 1_000

export async function watch(port: number): Promise<Watcher> {
  const from = `http://127.0.0.1:${port}`
  const leaving = new AbortController()
  const stream = await fetch(`${from}/v1/stream`, { signal: leaving.signal })
  if (!stream.ok || stream.body === null) throw new Error(`The stream answered ${stream.status}.`)
  // The first read loads code, which is not part of the cost.
  await scrape(`${from}/metrics`, leaving.signal)
  const reading = changesIn(stream.body, leaving.signal)
  const scraping = scrapesOf(`${from}/metrics`, leaving.signal)
  return {
    end: async () => {
      leaving.abort()
      const watched = { changes: await reading, scrapes: await scraping }
      if (watched.changes === 0) throw new Error('Nothing was seen of what arrived.')
      return watched
    },
  }
}

/** Parses the stream at the end, because the watcher shares the machine with the measured server. */
async function changesIn(body: AsyncIterable<Uint8Array>, leaving: AbortSignal): Promise<number> {
  const chunks: Uint8Array[] = []
  try {
    for await (const chunk of body) chunks.push(chunk)
  } catch (error) {
    if (!leaving.aborted) throw error
  }
  return Buffer.concat(chunks).toString('latin1').split('\nevent: event').length - 1
}

async function scrapesOf(url: string, leaving: AbortSignal): Promise<number> {
  let scrapes = 0
  try {
    for (;;) {
      await sleep(SCRAPE_EVERY, undefined, { signal: leaving })
      await scrape(url, leaving)
      scrapes++
    }
  } catch (error) {
    if (!leaving.aborted) throw error
  }
  return scrapes
}

async function scrape(url: string, leaving: AbortSignal): Promise<void> {
  const answer = await fetch(url, { signal: leaving })
  if (!answer.ok) throw new Error(`The metrics answered ${answer.status}.`)
  await answer.text()
}
