// One worker process of one side. Arguments: side, address of the server, jobs at once. It begins on a message from its parent,
// and ends when the parent does.
import { workers, type WorkersName } from './sides.ts'

const [name = '', url = '', concurrency = ''] = process.argv.slice(2)
process.once('disconnect', () => process.exit())
process.once('message', () => void workers[name as WorkersName].work(url, Number(concurrency)))
process.send?.('ready')
