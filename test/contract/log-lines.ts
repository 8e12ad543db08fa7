/**
 * Finds the log lines of the projector and of the API in their sources, with the types that the compiler knows.
 * A use of a log method that it cannot read is an error, so that no line is missing on the page.
 */
import { join, relative } from 'node:path'
import {
  type Expression,
  isArrowFunction,
  isBindingElement,
  isCallExpression,
  isElementAccessExpression,
  isIdentifier,
  isNewExpression,
  isObjectLiteralExpression,
  isPropertyAccessExpression,
  isPropertyAssignment,
  isSpreadAssignment,
  isTemplateExpression,
  type Node,
} from 'typescript/unstable/ast'
import { API, type Checker, SignatureKind, SymbolFlags, type Type } from 'typescript/unstable/sync'

export type LogField = { readonly name: string; readonly type: string; readonly optional: boolean }
export type LogLine = {
  readonly file: string
  readonly levels: readonly string[]
  /** A part of a message that differs is its expression in braces. */
  readonly messages: readonly string[]
  readonly fields: readonly LogField[]
  /** Whether the line has further fields, which differ from error to error. */
  readonly open: boolean
}
/** The fields that an error with a stop code adds to its line. */
export type StopFields = { readonly code: string; readonly fields: readonly LogField[] }
export type Logged = { readonly lines: readonly LogLine[]; readonly stops: readonly StopFields[] }

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal']
/** `say` is the API's method that takes the level first. */
const METHODS = [...LEVELS, 'say']

/**
 * @param root a folder with a tsconfig.json
 * @param logs whether a file, by its path in that folder, belongs to a process with a log
 * @throws Error that names each use of a log method that cannot be read
 */
export const readLogLines = (root: string, logs: (path: string) => boolean): Logged => {
  const api = new API({ cwd: root })
  try {
    const project = api.updateSnapshot({ openProjects: [join(root, 'tsconfig.json')] }).getProjects()[0]
    if (project === undefined) throw new Error(`${root} has no project`)
    const { program, checker } = project
    const lines: LogLine[] = []
    const stops: StopFields[] = []
    const unreadable: string[] = []
    for (const name of program.getSourceFileNames().toSorted()) {
      const file = relative(root, name)
      const source = logs(file) ? program.getSourceFile(name) : undefined
      const visit = (node: Node): void => {
        if (isHidden(checker, node)) unreadable.push(`${file}: ${node.parent.getText()}`)
        const line = readLine(checker, node)
        if (line === 'unreadable') unreadable.push(`${file}: ${node.getText()}`)
        else if (line !== undefined) lines.push({ file, ...line })
        const added = readStops(checker, node)
        if (added === 'unreadable') unreadable.push(`${file}: ${node.getText()}`)
        else stops.push(...added)
        node.forEachChild(visit)
      }
      source?.forEachChild(visit)
    }
    if (unreadable.length > 0) throw new Error(`Log lines that cannot be read:\n${unreadable.join('\n')}`)
    return { lines, stops }
  } finally {
    api.close()
  }
}

/** The name of the called method, for calls as `log.info(…)`, `log.warn?.(…)` and `say(…)`. */
const methodOf = (callee: Expression): string | undefined => {
  if (isPropertyAccessExpression(callee)) return callee.name.text
  return isIdentifier(callee) ? callee.text : undefined
}

const readLine = (checker: Checker, node: Node): Omit<LogLine, 'file'> | 'unreadable' | undefined => {
  if (!isCallExpression(node) || isForwarding(node)) return undefined
  const { expression: callee, arguments: given } = node
  if (isElementAccessExpression(callee)) {
    const levels = literalsOf(checker, callee.argumentExpression)
    return isLevels(levels) ? readArguments(checker, levels, given) : undefined
  }
  const method = methodOf(callee)
  if (method === 'say') {
    const [level, message, details] = given
    const levels = level && literalsOf(checker, level)
    if (!isLevels(levels) || message === undefined) return 'unreadable'
    return readArguments(checker, levels, details === undefined ? [message] : [details, message])
  }
  return method !== undefined && LEVELS.includes(method) ? readArguments(checker, [method], given) : undefined
}

const isLevels = (words: readonly string[] | undefined): words is readonly string[] =>
  words !== undefined && words.length > 0 && words.every(word => LEVELS.includes(word))

/** Whether a call is the body of `say`, which passes on the lines of its callers. */
const isForwarding = ({ parent }: Node): boolean =>
  isArrowFunction(parent) && isPropertyAssignment(parent.parent) && parent.parent.name.getText() === 'say'

const readArguments = (
  checker: Checker,
  levels: readonly string[],
  given: readonly Expression[],
): Omit<LogLine, 'file'> | 'unreadable' => {
  const [first, second] = given
  if (first === undefined || given.length > 2) return 'unreadable'
  const message = second ?? first
  if (!isText(checker, message)) return 'unreadable'
  const messages = messagesOf(checker, message)
  if (second === undefined) return { levels, messages, fields: [], open: false }
  const type = checker.getTypeAtLocation(first)
  if (type === undefined) return 'unreadable'
  return { levels, messages, fields: fieldsOf(checker, type, first), open: isOpen(checker, first) }
}

const isText = (checker: Checker, node: Expression): boolean => {
  const type = checker.getTypeAtLocation(node)
  return type !== undefined && typeName(checker, type) === 'string'
}

const messagesOf = (checker: Checker, node: Expression): readonly string[] => {
  if (isTemplateExpression(node)) return [node.getText().slice(1, -1).replaceAll('$', '')]
  return literalsOf(checker, node) ?? [`{${node.getText()}}`]
}

/** The values of an expression whose type is one or several literal texts. */
const literalsOf = (checker: Checker, node: Node): string[] | undefined => {
  const type = checker.getTypeAtLocation(node)
  const values = membersOf(type).map(one => (one.isStringLiteralType() ? one.value : undefined))
  return values.every(value => value !== undefined) ? values.toSorted() : undefined
}

const membersOf = (type: Type | undefined): readonly Type[] => {
  if (type === undefined) return []
  return type.isUnionType() ? type.getTypes() : [type]
}

const fieldsOf = (checker: Checker, type: Type, at: Node): LogField[] =>
  checker.getPropertiesOfType(type).map(property => {
    const names = new Set(
      membersOf(checker.getTypeOfSymbolAtLocation(property, at)).map(member => typeName(checker, member)),
    )
    const mayLack = names.delete('undefined') || (property.flags & SymbolFlags.Optional) !== 0
    return { name: property.name, type: [...names].toSorted().join(' or '), optional: mayLack }
  })

/** The type as JSON has it. */
const typeName = (checker: Checker, type: Type): string => {
  const members = membersOf(type)
  if (members.length > 1) return [...new Set(members.map(member => typeName(checker, member)))].toSorted().join(' or ')
  if (checker.isArrayLikeType(type)) return 'array of strings'
  const name = checker.typeToString(checker.getBaseTypeOfLiteralType(type) ?? type)
  return /^(?:string|number|boolean|null|undefined)$/.test(name) ? name : 'object'
}

/** Whether fields come from a record with any names, as those of an error do. */
const isOpen = (checker: Checker, node: Expression): boolean => {
  const parts = isObjectLiteralExpression(node)
    ? [...node.properties].filter(isSpreadAssignment).map(({ expression }) => expression)
    : [node]
  return parts.some(part =>
    membersOf(checker.getTypeAtLocation(part)).some(type => checker.getIndexInfosOfType(type).length > 0),
  )
}

/** Whether a node takes a log method away under another name, where its calls are not found. */
const isHidden = (checker: Checker, node: Node): boolean => {
  if (isBindingElement(node)) {
    const from = node.propertyName?.getText() ?? ''
    const { name } = node
    return name !== undefined && METHODS.includes(from) && name.getText() !== from && isFunction(checker, name)
  }
  if (!isPropertyAccessExpression(node) || !METHODS.includes(node.name.text) || !isFunction(checker, node)) return false
  const { parent } = node
  if (isCallExpression(parent) && parent.expression === node) return false
  const { text } = node.name
  const isBind = isPropertyAccessExpression(parent) && parent.name.text === 'bind'
  const target = isBind ? parent.parent.parent : parent
  if (isPropertyAssignment(target)) return target.name.getText() !== text
  if (!isCallExpression(target)) return true
  const parameters = checker.getResolvedSignature(target)?.getParameters()
  return parameters?.[target.arguments.indexOf(node)]?.name !== text
}

const isFunction = (checker: Checker, node: Node): boolean =>
  membersOf(checker.getTypeAtLocation(node)).some(
    type => checker.getSignaturesOfType(type, SignatureKind.Call).length > 0,
  )

/** The fields of a new StopError, for each code that it may have. */
const readStops = (checker: Checker, node: Node): readonly StopFields[] | 'unreadable' => {
  if (!isNewExpression(node) || node.expression.getText() !== 'StopError') return []
  const [code, , where] = node.arguments ?? []
  const codes = code && literalsOf(checker, code)
  if (codes === undefined || (where && isOpen(checker, where))) return 'unreadable'
  const type = where && checker.getTypeAtLocation(where)
  return codes.map(one => ({ code: one, fields: where && type ? fieldsOf(checker, type, where) : [] }))
}
