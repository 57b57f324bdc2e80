// `createNodeBodyReader` reads the body of a request to Node's server up to its bound.
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { ReadBody, ReadFailure } from '../receive/body.ts'

/** The sockets from which a body is being read. */
const bodyReaders = new WeakMap<Socket, (why: ReadFailure) => void>()

/** `abortBody` ends the reading of a body when its connection fails. It returns false if no body is being read from
    the socket. */
export function abortBody(socket: Socket, why: ReadFailure): boolean {
  const end = bodyReaders.get(socket)
  end?.(why)
  return end !== undefined
}

export function createNodeBodyReader(message: IncomingMessage): ReadBody {
  return (most, reserve = alwaysReserve) =>
    new Promise((resolve) => {
      const chunks: Buffer[] = []
      let length = 0
      const end = (body: Awaited<ReturnType<ReadBody>>): void => {
        message.off('data', take).off('end', done).off('close', cutOff).off('error', cutOff)
        bodyReaders.delete(message.socket)
        resolve(body)
      }
      const take = (chunk: Buffer): void => {
        length += chunk.length
        const fault: ReadFailure | undefined =
          length > most ? 'too-large' : reserve(chunk.length) ? undefined : 'no-room'
        if (fault === undefined) return void chunks.push(chunk)
        chunks.length = 0
        end(fault)
        // The rest is discarded until the request must end: a sender that is cut off while it sends would not read the
        // response.
        message.resume()
      }
      const done = (): void => end(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, length))
      const cutOff = (): void => end('cut-off')
      message.on('data', take).on('end', done).on('close', cutOff).on('error', cutOff)
      bodyReaders.set(message.socket, end)
    })
}

const alwaysReserve = (): boolean => true
