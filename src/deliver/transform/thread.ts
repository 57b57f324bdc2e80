// This thread runs scripts in a sandbox, one after the other. `ScriptThreads` ends the thread if a script does not end.
import { parentPort } from 'node:worker_threads'
import { createSandbox } from './sandbox.ts'
import type { ScriptCall } from './script.ts'

const run = await createSandbox()

parentPort?.on('message', (call: ScriptCall) => {
  void run(call).then((result) => parentPort?.postMessage(result))
})
parentPort?.postMessage('ready')
