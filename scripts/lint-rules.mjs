// The project's own lint rules: which folder of src/ may import what (ARCHITECTURE.md), and which code may read the time.
// The linter's built-in rules can express neither.
import { dirname, posix, relative, sep } from 'node:path'
import { root } from './lib.mjs'

const base = ['clock.ts', 'errors.ts', 'defaults.ts', 'churn-map.ts']
const nouns = ['model', 'store', 'observe', 'flow', 'limit', 'crypto', 'validate']
const stages = ['receive', 'publish', 'dispatch', 'run', 'deliver', 'maintain']

/**
 * For each folder of src/, the other folders it may import. An import that is not listed is an error. The stages (receive,
 * publish, dispatch, run, deliver, maintain) never import each other: they meet in the store, and app/ connects them.
 */
const layers = {
  model: ['clock.ts', 'errors.ts'],
  validate: [...base],
  store: [...base, 'model'],
  crypto: [...base, 'model', 'store'],
  observe: [...base, 'model', 'store', 'validate'],
  limit: [...base, 'model', 'store', 'observe', 'validate'],
  flow: [...base, 'model', 'store', 'limit', 'validate'],
  receive: [...base, 'model', 'store', 'observe', 'crypto', 'validate'],
  sources: [...base, 'model', 'receive', 'validate'],
  publish: [...base, 'model', 'store', 'observe', 'flow', 'validate'],
  dispatch: [...base, 'model', 'store', 'flow'],
  run: [...base, 'model', 'store', 'observe', 'limit'],
  deliver: [...base, ...nouns],
  maintain: [...base, 'model', 'store', 'observe'],
  admin: [...base, ...nouns, 'receive', 'publish', 'run', 'deliver', 'maintain'],
  http: [...base, 'model', 'observe', 'receive', 'crypto', 'store', 'validate'],
  api: [...base, ...nouns, ...stages, 'sources', 'admin', 'http'],
  app: [...base, ...nouns, ...stages, 'sources', 'admin', 'http', 'api'],
  cli: [...base, ...nouns, ...stages, 'sources', 'admin', 'http', 'api', 'app'],
  testing: [...base, ...nouns, ...stages, 'app'],
}

/** The model may use only this package, which has types and pure functions. */
const packagesOfModel = ['node:crypto']

const pathIn = (folder, file) => relative(folder, file).split(sep).join('/')

/** `objection` returns why a file may not have an import, or undefined if it may. */
function objection(file, specifier) {
  const folder = file.split('/')[1]
  const allowed = layers[folder]
  if (!file.startsWith('src/') || allowed === undefined) return undefined
  if (!specifier.startsWith('.')) {
    if (folder !== 'model' || packagesOfModel.includes(specifier)) return undefined
    return `model/ may not import "${specifier}": the model is types and pure functions.`
  }
  const [top, part] = posix.join(dirname(file), specifier).split('/')
  if (top === 'src' && (part === folder || allowed.includes(part))) return undefined
  return `${folder}/ may not import "${specifier}". It may import ${allowed.join(', ')} (scripts/lint-rules.mjs).`
}

const layerRule = {
  create(context) {
    const file = pathIn(root, context.filename)
    const look = ({ source }) => {
      if (typeof source?.value !== 'string') return
      const message = objection(file, source.value)
      if (message !== undefined) context.report({ node: source, message })
    }
    return {
      ImportDeclaration: look,
      ImportExpression: look,
      ExportNamedDeclaration: look,
      ExportAllDeclaration: look,
      TSImportType: look,
    }
  },
}

const presentDateRule = {
  create(context) {
    const look = (node) => {
      if (node.callee.type !== 'Identifier' || node.callee.name !== 'Date') return
      if (node.type === 'NewExpression' && node.arguments.length > 0) return
      context.report({ node, message: 'Time comes from the Clock: give Date the instant it stands for.' })
    }
    return { NewExpression: look, CallExpression: look }
  },
}

// The linter's plugin interface requires a default export.
export default {
  meta: { name: 'sluice' },
  rules: { layers: layerRule, 'no-present-date': presentDateRule },
}
