// Simulates a pooler in transaction mode: each transaction gets a free session, and settings of a session stay for its next
// client. The next session is the one that was used last, or the one that rested longest (round robin).
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { listenInPlaceOf } from './proxy-address.ts'

export type PoolerOrder = 'used last' | 'rested longest'

export interface TransactionPooler {
  readonly url: string
  close(): Promise<void>
}

/** For a server that asks for a plain-text password. */
export async function transactionPooler(url: string, order: PoolerOrder = 'used last'): Promise<TransactionPooler> {
  const sessions: Session[] = []
  const take = (): Session | undefined => (order === 'used last' ? sessions.pop() : sessions.shift())
  const clients = new Set<Socket>()
  const server = createServer((socket) => {
    clients.add(socket)
    socket.on('error', () => {})
    // The session ends when the client ends.
    serve(socket, { take, sessions }, () => loggedIn(new URL(url))).catch(() => {})
  })
  return {
    url: await listenInPlaceOf(url, server),
    async close() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of [...clients, ...sessions.map((session) => session.socket)]) socket.destroy()
      await closed
    },
  }
}

interface Session {
  readonly socket: Socket
  readonly answers: AsyncGenerator<Message>
}

interface Free {
  readonly sessions: Session[]
  take(): Session | undefined
}

interface Message {
  readonly type: string
  readonly bytes: Buffer
}

const LENGTH = 4
const PROTOCOL = 196_608

async function serve(client: Socket, free: Free, login: () => Promise<Session>): Promise<void> {
  const said = messages(client, true)
  await said.next()
  client.write(Buffer.concat([message('R', int(0)), message('Z', Buffer.from('I'))]))
  let session: Session | undefined
  let asked: Buffer[] = []
  for await (const { type, bytes } of said) {
    if (type === 'X') client.end()
    asked.push(bytes)
    // Only then does the server send a reply.
    if (type !== 'S' && type !== 'Q') continue
    session ??= free.take() ?? (await login())
    session.socket.write(Buffer.concat(asked))
    asked = []
    const last = await passedOn(session, client)
    if (last.bytes.at(-1) !== 'I'.charCodeAt(0)) continue
    free.sessions.push(session)
    session = undefined
  }
}

/** Reads up to the message that says that the server is ready for the next query. */
async function passedOn({ answers }: Session, to: Socket): Promise<Message> {
  for (;;) {
    const { value } = (await answers.next()) as { value: Message }
    to.write(value.bytes)
    if (value.type === 'Z') return value
  }
}

async function loggedIn(url: URL): Promise<Session> {
  const socket = connect(Number(url.port), url.hostname).on('error', () => {})
  const who = `user\0${url.username}\0database\0${url.pathname.slice(1)}\0\0`
  const startup = Buffer.concat([int(PROTOCOL), Buffer.from(who)])
  socket.write(Buffer.concat([int(startup.length + LENGTH), startup]))
  const answers = messages(socket, false)
  await answers.next()
  socket.write(message('p', Buffer.from(`${url.password}\0`)))
  for (;;) {
    const { value } = (await answers.next()) as { value: Message }
    if (value.type === 'Z') return { socket, answers }
  }
}

/** `isClient` is true for a client, whose first message has no type. */
async function* messages(from: Socket, isClient: boolean): AsyncGenerator<Message, undefined> {
  let rest = Buffer.alloc(0)
  let typed = isClient ? 0 : 1
  for await (const chunk of from.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= typed + LENGTH) {
      const end = typed + rest.readUInt32BE(typed)
      if (rest.length < end) break
      yield { type: typed === 0 ? '' : rest.toString('latin1', 0, 1), bytes: rest.subarray(0, end) }
      rest = rest.subarray(end)
      typed = 1
    }
  }
  return undefined
}

function message(type: string, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from(type), int(body.length + LENGTH), body])
}

function int(value: number): Buffer {
  const bytes = Buffer.alloc(LENGTH)
  bytes.writeInt32BE(value)
  return bytes
}
