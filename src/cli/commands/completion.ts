// `sluice completion`: what a shell needs to complete commands and options, made of the declarations.
import { COMMON } from '../arguments.ts'
import { misused, type Command } from '../command.ts'
import { EXIT } from '../exit.ts'

const SHELLS = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof SHELLS)[number]

/** Beside those that are given. */
const OTHERS: readonly string[] = ['help', 'completion']

export function completion(commands: readonly Command[]): Command {
  return {
    words: 'completion',
    takes: ['<bash|zsh|fish>'],
    says: 'the completion of a shell: source <(sluice completion bash)',
    run: (scene) => {
      const shell = SHELLS.find((name) => name === scene.given.words[0])
      if (shell === undefined) return Promise.resolve(misused(scene, `A shell is one of ${SHELLS.join(', ')}.`))
      scene.out.line(SCRIPTS[shell](treeOf(commands)))
      return Promise.resolve(EXIT.done)
    },
  }
}

/** By the words that have been typed, `''` for none: what may come next. */
type Tree = ReadonlyMap<string, readonly string[]>

function treeOf(commands: readonly Command[]): Tree {
  const tree = new Map<string, readonly string[]>([['completion', SHELLS]])
  const firsts = commands.map(({ words }) => words.split(' ')[0] ?? '')
  tree.set('', [...new Set([...OTHERS, ...firsts])].toSorted())
  for (const { words, options = {} } of commands) {
    const [first = '', second] = words.split(' ')
    tree.set(
      words,
      Object.keys({ ...options, ...COMMON }).map((name) => `--${name}`),
    )
    if (second !== undefined) tree.set(first, [...(tree.get(first) ?? []), second])
  }
  // Where the list is meant, its name can be left out.
  for (const first of firsts) {
    const ofList = tree.get(`${first} list`)
    if (ofList !== undefined) tree.set(first, [...new Set([...(tree.get(first) ?? []), ...ofList])])
  }
  return tree
}

const SCRIPTS: Readonly<Record<Shell, (tree: Tree) => string>> = {
  // A shell may hand over --flow=x as three words.
  bash: (tree) => `_sluice() {
  local word before="" typed="" next=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ "$word" == -* || "$word" == "=" || "$before" == "=" ]] || typed+="$word "
    before="$word"
  done
  case "$typed" in
${casesOf(tree)}
  esac
  COMPREPLY=($(compgen -W "$next" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _sluice sluice`,
  zsh: (tree) => `#compdef sluice
_sluice() {
  local typed="" next="" word
  for word in "\${(@)words[2,CURRENT-1]}"; do
    [[ "$word" == -* ]] || typed+="$word "
  done
  case "$typed" in
${casesOf(tree)}
  esac
  compadd -- \${=next}
}
compdef _sluice sluice`,
  fish: (tree) =>
    [...tree]
      .map(([typed, next]) => {
        const when =
          typed === ''
            ? '__fish_use_subcommand'
            : `string match -qr '^sluice( --\\S+)* ${typed}( |$)' -- (commandline -pc)`
        return `complete -c sluice -n "${when}" -f -a "${next.join(' ')}"`
      })
      .join('\n'),
}

/** The longest first: `dead list` before `dead`. Words of one's own may stand behind a whole command. */
function casesOf(tree: Tree): string {
  return [...tree]
    .toSorted(([one], [other]) => other.split(' ').length - one.split(' ').length || one.localeCompare(other))
    .map(([typed, next]) => `    ${typed === '' ? "''" : `'${typed} '*`}) next="${next.join(' ')}" ;;`)
    .join('\n')
}
