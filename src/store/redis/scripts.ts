// `Scripts` executes the scripts of the store. The server caches a script by its hash and may forget it, e.g. in a restart.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { pack } from './pack.ts'
import type { RedisArgument, RedisConnection, RedisReply } from './client.ts'

/**
 * A flag says when the server executes a script: `no-writes` also on a replica, `allow-oom` also when its memory is full. Without
 * flags, a script on a full server is rejected before its first write.
 */
type ScriptFlag = 'no-writes' | 'allow-oom' | ''

export class Script {
  readonly text: string
  readonly sha: string

  constructor(file: string, flag: ScriptFlag) {
    const lua = readFileSync(new URL(file, import.meta.url), 'utf8')
    this.text = `#!lua${flag === '' ? '' : ` flags=${flag}`}\n${lua}`
    this.sha = createHash('sha1').update(this.text).digest('hex')
  }
}

/** `runScript` sends the hash of the script, and its text only if the server does not know it. */
export async function runScript(
  connection: Pick<RedisConnection, 'send'>,
  { text, sha }: Script,
  keys: readonly string[],
  args: readonly RedisArgument[],
): Promise<RedisReply> {
  const rest = [String(keys.length), ...keys, pack(args)]
  try {
    return await connection.send(['EVALSHA', sha, ...rest])
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
    return connection.send(['EVAL', text, ...rest])
  }
}
