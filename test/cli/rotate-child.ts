// Encrypts a file again under another key, one page per line of standard input, and reports each page: a test kills it in between.
import { createInterface } from 'node:readline'
import { Sluice } from '../../src/index.ts'

const [file = '', ...key] = process.argv.slice(2)
const app = new Sluice({ store: `sqlite:${file}`, encryptionKey: key, log: false })
let after: string | undefined
for await (const _ of createInterface({ input: process.stdin })) {
  const page = await app.admin.encryption.rotate(after === undefined ? {} : { after })
  after = page.next
  process.stdout.write(`${page.reencrypted}\n`)
  if (after === undefined) break
}
await app.stop()
