// Simulates the part of a standby that keeps dead rows: it follows a replication slot and reports which transactions it still
// needs. A real standby would need another server.
import { once } from 'node:events'
import type { Writable } from 'node:stream'
import pg from 'pg'

const FEEDBACK_BYTES = 25

/** Returns a function that ends the standby. `xmin` is the first transaction that it may still need. */
export async function standby(url: string, slot: string, xmin: number): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: url, replication: 'true' } as pg.ClientConfig)
  client.on('error', () => {})
  await client.connect()
  const { rows } = await client.query<{ xlogpos: string }>('IDENTIFY_SYSTEM')
  const { connection } = client as unknown as {
    readonly connection: NodeJS.EventEmitter & { readonly stream: Writable }
  }
  const following = once(connection, 'replicationStart')
  // The command ends with the connection, never with a reply.
  client.query(`START_REPLICATION SLOT ${slot} PHYSICAL ${rows[0]?.xlogpos ?? '0/0'}`).catch(() => {})
  await following
  connection.stream.write(feedback(xmin))
  return async () => {
    connection.stream.destroy()
  }
}

/** A message `hot standby feedback` of the replication protocol. */
function feedback(xmin: number): Buffer {
  const message = Buffer.alloc(1 + 4 + FEEDBACK_BYTES)
  message.write('d', 0)
  message.writeInt32BE(4 + FEEDBACK_BYTES, 1)
  message.write('h', 5)
  message.writeInt32BE(xmin, 14)
  return message
}
