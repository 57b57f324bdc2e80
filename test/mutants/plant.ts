// Plants one bug: imported before a program, it changes the text of one source file when that file is loaded. The code under test
// needs no hooks, so a bug can be planted wherever a person could write one.
import { registerHooks } from 'node:module'
import { MUTANTS } from './mutants.ts'

const name = process.env['SLUICE_MUTANT']
const mutant = MUTANTS.find((one) => one.name === name)
if (mutant === undefined) throw new Error(`no mutant ${name}`)

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context)
    const edits = mutant.edits.filter((edit) => url.endsWith(`/src/${edit.file}`))
    if (edits.length === 0) return loaded
    let source = Buffer.from(loaded.source as Uint8Array).toString()
    for (const { find, replace } of edits) {
      if (source.split(find).length !== 2) throw new Error(`${mutant.name}: "${find}" is not once in ${url}`)
      source = source.replace(find, () => replace)
    }
    return { ...loaded, source }
  },
})
