// One side of the ingest bench, served by a process of its own. Arguments: side, folder, address of its service. It sends its
// port to the parent, and ends when the parent does.
import { sides, type SideName } from './sides.ts'

const [name = '', folder = '', service = ''] = process.argv.slice(2)
const side = sides[name as SideName]
process.once('disconnect', () => process.exit())
const { port, close } = await side(folder, service)
process.once('message', () => void close().then(() => process.exit()))
process.send?.({ port })
