// Opens the sides of a run, and closes all of them again.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { openGraphile } from './peers/graphile.ts'
import type { Options } from './options.ts'
import { postgresFolder } from './run-folder.ts'
import type { Contenders } from './rounds.ts'
import { findSubject } from './subject.ts'

export async function withContenders<Result>(
  folder: string,
  { localQueueSize, store, through }: Pick<Options, 'localQueueSize' | 'store' | 'through'>,
  use: (contenders: Contenders) => Promise<Result>,
): Promise<Result> {
  const module = await findSubject()
  const peer = await openGraphile(postgresFolder(folder), localQueueSize)
  try {
    if (module === undefined) return await use({ subject: undefined, peer })
    const subjectFolder = join(folder, 'subject')
    await mkdir(subjectFolder)
    const subject = await module.openSide(subjectFolder, { store, through })
    try {
      return await use({ subject, peer })
    } finally {
      await subject.close()
    }
  } finally {
    await peer.close()
  }
}
