/** The server for agents as a process of its own: with the client of its SDK, and by hand, line by line. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import type { Scope } from './scope.ts'

const program = join(import.meta.dirname, '../../client/mcp/src/main.ts')

export type ToolAnswer = {
  readonly isError: boolean
  readonly text: string
  /** Undefined in an error. */
  readonly structured: unknown
}
export type Agent = {
  readonly client: Client
  readonly call: (name: string, given?: Readonly<Record<string, unknown>>) => Promise<ToolAnswer>
  /** The structured content of an answer that must not be an error. */
  readonly read: <Content>(name: string, given?: Readonly<Record<string, unknown>>) => Promise<Content>
  /** The standard error. */
  readonly said: () => string
  /** All answers, as text. */
  readonly answered: () => string
}

type Settings = { readonly API: string; readonly KEY: string }

/** @param mode the protocol: that of 2025, or the newest that both sides know */
export const startAgent = async (
  scope: Scope,
  settings: Settings,
  mode: 'legacy' | 'auto' = 'auto',
): Promise<Agent> => {
  const transport = new StdioClientTransport({
    ...{ command: process.execPath, args: [program], stderr: 'pipe' },
    env: { ...settings, PATH: process.env.PATH ?? '' },
  })
  const [said, answered]: [string[], string[]] = [[], []]
  transport.stderr?.on('data', data => void said.push(String(data)))
  const client = new Client({ name: 'test', version: '0' }, { versionNegotiation: { mode } })
  await client.connect(transport)
  scope.onTestFinished(() => client.close())
  const call: Agent['call'] = async (name, given = {}) => {
    const answer = await client.callTool({ name, arguments: given })
    answered.push(JSON.stringify(answer))
    const { content, structuredContent, isError } = answer
    const [first] = content as { readonly type: string; readonly text: string }[]
    return { isError: isError === true, text: first?.text ?? '', structured: structuredContent }
  }
  return {
    client,
    call,
    read: async <Content>(name: string, given?: Readonly<Record<string, unknown>>) => {
      const { isError, text, structured } = await call(name, given)
      if (isError) throw new Error(text)
      return structured as Content
    },
    said: () => said.join(''),
    answered: () => answered.join('\n'),
  }
}

/** Starts the program without any library of the protocol. `lines` are those of standard output so far. */
export const startByHand = (scope: Scope, settings: Partial<Settings>) => {
  const child = spawn(process.execPath, [program], { env: { ...settings, PATH: process.env.PATH ?? '' } })
  scope.onTestFinished(async () => void child.kill('SIGKILL'))
  const lines: string[] = []
  let said = ''
  createInterface(child.stdout).on('line', line => void lines.push(line))
  child.stderr.setEncoding('utf8').on('data', text => (said += text))
  const ended = once(child, 'close').then(([code]) => code as number | null)
  return {
    lines,
    ended,
    said: () => said,
    send: (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`),
    endInput: () => child.stdin.end(),
  }
}
