// As much of a standby as keeps rows from being cleared away: it follows a replication slot and says which transactions it
// still has to see. A real one would take another server.
import { once } from 'node:events'
import type { Writable } from 'node:stream'
import pg from 'pg'

const FEEDBACK_BYTES = 25

/** Answers how to end it. `xmin`: the first transaction that it might look behind. */
export async function standby(url: string, slot: string, xmin: number): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: url, replication: 'true' } as pg.ClientConfig)
  client.on('error', () => {})
  await client.connect()
  const { rows } = await client.query<{ xlogpos: string }>('IDENTIFY_SYSTEM')
  const { connection } = client as unknown as {
    readonly connection: NodeJS.EventEmitter & { readonly stream: Writable }
  }
  const following = once(connection, 'replicationStart')
  // It ends with the connection, and never by an answer.
  client.query(`START_REPLICATION SLOT ${slot} PHYSICAL ${rows[0]?.xlogpos ?? '0/0'}`).catch(() => {})
  await following
  connection.stream.write(feedback(xmin))
  return async () => {
    connection.stream.destroy()
  }
}

/** A message `hot standby feedback`, as the replication protocol has it. */
function feedback(xmin: number): Buffer {
  const message = Buffer.alloc(1 + 4 + FEEDBACK_BYTES)
  message.write('d', 0)
  message.writeInt32BE(4 + FEEDBACK_BYTES, 1)
  message.write('h', 5)
  message.writeInt32BE(xmin, 14)
  return message
}
