/** Scripts that complete the commands and options of `commission` in a shell. */
import type { Command } from 'commander'

/** A command, and the commands and options that may follow it. */
type Names = { readonly path: readonly string[]; readonly words: readonly string[] }

const namesOf = (command: Command, path: readonly string[] = []): Names[] => {
  const options = command.options.flatMap(({ long }) => (long ? [long] : []))
  const words = [...command.commands.map(inner => inner.name()), ...options, '--help']
  return [{ path, words }, ...command.commands.flatMap(inner => namesOf(inner, [...path, inner.name()]))]
}

/** @param program with the options of every command */
export const completionOf = (shell: 'bash' | 'zsh' | 'fish', program: Command): string => {
  const names = namesOf(program)
  if (shell === 'fish') return fish(names)
  return shell === 'bash' ? bash(names) : `autoload -U +X bashcompinit && bashcompinit\n${bash(names)}`
}

const bash = (names: readonly Names[]): string => {
  const paths = names.flatMap(({ path }) => (path.length === 0 ? [] : [`'${path.join(' ')}'`]))
  return `_commission() {
  local called= word words=
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${called:+$called }$word" in
      ${paths.join(' | ')})
        called="\${called:+$called }$word" ;;
    esac
  done
  case "$called" in
${names.map(({ path, words }) => `    '${path.join(' ')}') words='${words.join(' ')}' ;;`).join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _commission commission
`
}

const fish = (names: readonly Names[]): string => {
  const lines = names.flatMap(({ path, words }) => {
    const called = path.map(name => `__fish_seen_subcommand_from ${name}`)
    const when = path.length === 0 ? '__fish_use_subcommand' : called.join('; and ')
    return words.map(word => {
      const what = word.startsWith('--') ? `-l ${word.slice(2)}` : `-a ${word}`
      return `complete -c commission -n '${when}' ${what}`
    })
  })
  return `${lines.join('\n')}\n`
}
