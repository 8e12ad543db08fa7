/** The projector and the commands as processes: an unhandled error ends them, and only its place is logged. */
import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { freePort } from '../../../services/ports.ts'
import { rejectsOnSignal, throwsOnSignal } from '../../support/defects.ts'
import { type RunningProcess, startProcess } from '../../support/processes.ts'
import { eventually, type Scope } from '../../support/scope.ts'

/** A server that accepts connections and never answers, so that the programs wait for Kafka and Elasticsearch. */
const startSilence = async (scope: Scope): Promise<number> => {
  const port = await freePort()
  const taken = new Set<{ destroy: () => void }>()
  const server = createServer(socket => {
    taken.add(socket)
    socket.on('error', () => undefined)
  }).listen(port, '127.0.0.1')
  scope.onTestFinished(async () => {
    for (const socket of taken) socket.destroy()
    server.close()
  })
  return port
}

const programs = {
  'projector/main.ts': [],
  'tools/main.ts': ['projection', 'list'],
} as const

/** Waits for the preload to install its signal handler. Without it the signal itself ends the process. */
const untilRunning = (program: RunningProcess, file: keyof typeof programs): Promise<void> =>
  eventually(() => {
    if (file === 'projector/main.ts') expect(program.log()).toContain('the admin port listens')
    else expect(program.log()).toContain('PRELOADED')
  })

test.for([
  ['projector/main.ts', 'a rejected promise', rejectsOnSignal],
  ['projector/main.ts', 'an exception', throwsOnSignal],
  ['tools/main.ts', 'a rejected promise', rejectsOnSignal],
  ['tools/main.ts', 'an exception', throwsOnSignal],
] as const)('%s ends with exit code 70 on %s that nothing handles', async ([file, _, defect], scope) => {
  const port = await startSilence(scope)
  const said = '--import=data:text/javascript,process.stderr.write(%22PRELOADED%22)'
  const program = startProcess(
    scope,
    file,
    {
      KAFKA_BROKERS: `127.0.0.1:${port}`,
      ELASTICSEARCH_URL: `http://127.0.0.1:${port}`,
      PROJECTOR_ADMIN_PORT: '0',
      NODE_OPTIONS: `${defect.NODE_OPTIONS} ${said}`,
    },
    { parameters: programs[file] },
  )
  await untilRunning(program, file)
  process.kill(program.pid, 'SIGUSR2')
  expect(await program.exited, program.log()).toEqual({ code: 70, signal: null })
  expect(program.log()).toContain('TypeError')
  expect(program.log()).toMatch(/data:text\/javascript|at process/)
  expect(program.log()).not.toMatch(/CANARY|org_secret|payout_1/)
})
