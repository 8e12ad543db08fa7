/** The Python client, built as a wheel and installed in an empty environment. */
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { pythonProgram } from '../support/programs.ts'
import { startProxy } from '../support/proxy.ts'
import { installPythonClient } from '../support/python-client.ts'
import { fileScope } from '../support/scope.ts'

const scope = fileScope()

const answerOf = (status: number, body: string, header = 'X-Nothing: 0'): string =>
  `HTTP/1.1 ${status} x\r\n${header}\r\nContent-Length: ${body.length}\r\n\r\n${body}`

let started: ReturnType<typeof installPythonClient> | undefined
const shared = () => (started ??= installPythonClient(scope))

describe.skipIf(pythonProgram === undefined)('the Python client', () => {
  test('runs the example of its README in an empty environment', async () => {
    const { runProgram, example, printed } = await shared()
    // Decimal of Python keeps the zeros at the end of an amount.
    expect(await runProgram(example)).toEqual(printed.map(line => line.replace('sum 12.5 ', 'sum 12.50 ')))
  })

  test('reads records by ids, the totals of a rep, and the changes since an instant', async () => {
    const { runProgram } = await shared()
    const program = [
      'import os',
      'from commission_client import Client',
      'client = Client(os.environ["API"], os.environ["KEY"])',
      'asked = ["payout_2", "payout_none", "payout_1", "payout_2"]',
      'print(*[(payout.id, payout.superseded_by_id) for payout in client.payouts(ids=asked)])',
      'print(*[rep.id for rep in client.reps(ids=["rep_none"])])',
      'for rep_id in ("rep_1", "rep_none"):',
      '    print(*[f"{row.owed_amount} {row.paid_amount} {row.open_amount}" for row in client.totals(rep_id=rep_id).totals])',
      'for deal_id in ("deal_1", "deal_none"):',
      '    totals = client.totals(deal_id=deal_id, rep_id="rep_1")',
      '    print(len(totals.totals), *[f"{row.category} {row.currency} {row.amount}" for row in totals.line_totals])',
      'print(*[change.id for change in client.changes_since("2026-01-01T00:00:00.002Z")])',
      'print(*[change.id for change in client.changes_since("2025-12-31T23:59:59Z")])',
      'print(*[change.id for change in client.changes(after=client.totals().last_sequence - 3, limit=2)])',
    ].join('\n')
    expect(await runProgram(program)).toEqual([
      "('payout_2', None) ('payout_1', 'payout_2')",
      '',
      '12.5 -1.5 14',
      '',
      '0 earned EUR 12.5',
      '0',
      'payout_2 payroll_1',
      'rep_1.1 period_1.1 payout_1 payout_2 payroll_1',
      'payout_1 payout_2 payroll_1',
    ])
  })

  test('refuses a filter that is None, and asks nothing: it would select the whole organization', async () => {
    const { runProgram } = await shared()
    const program = `
import os
from commission_client import UNSET, Client
client = Client("http://127.0.0.1:1", "key", timeout=2)
reads = [client.payouts, client.payroll_records, client.changes, client.follow, client.totals]
given = [(read, "rep_id") for read in reads] + [(client.reps, "ids"), (client.periods, "ids"), (client.changes, "after")]
given.append((lambda **filters: client.changes_since("2026-01-01T00:00:00Z", **filters), "deal_id"))
for read, name in given:
    try:
        print(read(**{name: None}))
    except ValueError as error:
        print(str(error).startswith(f"{name} is None"))
client = Client(os.environ["API"], os.environ["KEY"])
print(*[payout.id for payout in client.payouts(deal_id=UNSET, starting_after=None)])
`
    expect(await runProgram(program)).toEqual([...Array(9).fill('True'), 'payout_2'])
  })

  test('tells type checkers the types of all its methods', async () => {
    const { runProgram } = await shared()
    const program = [
      'import importlib.resources, inspect, typing',
      'from commission_client import Client, Copy, read_copy',
      'print(importlib.resources.files("commission_client").joinpath("py.typed").is_file())',
      'methods = [m for c in (Client, Copy) for n, m in inspect.getmembers(c, inspect.isfunction) if n[0] != "_"]',
      'for method in [*methods, read_copy]:',
      '    hints = typing.get_type_hints(method)',
      '    names = [name for name in inspect.signature(method).parameters if name != "self"]',
      '    print(method.__name__, *[name for name in [*names, "return"] if name not in hints])',
    ].join('\n')
    const [typed, ...methods] = await runProgram(program)
    expect(typed).toBe('True')
    expect(methods.length).toBeGreaterThan(18)
    expect(methods.filter(line => line.includes(' '))).toEqual([])
  })

  test('tries again what breaks off or is refused for now', async t => {
    const { runProgram, api, environment } = await shared()
    const proxy = await startProxy(t, new URL(api).host)
    const unavailable = answerOf(503, '{"error":{"code":"unavailable","message":"Later."}}', 'Retry-After: 0')
    // It looks whole to the connection: a proxy of HTTP/1.0 can cut so.
    const cut = answerOf(200, '{"data":[{"id":"payout_1"}')
    const program = [
      'import os',
      'from commission_client import Client',
      'print(*[payout.id for payout in Client(os.environ["API"], os.environ["KEY"]).payouts()])',
    ].join('\n')
    const through = { ...environment, API: api.replace(new URL(api).host, proxy.address) }
    for (const fault of [
      { kind: 'cut-answer', bytes: 400 } as const,
      { kind: 'reset' } as const,
      { kind: 'other-answer', answer: unavailable } as const,
      { kind: 'other-answer', answer: answerOf(502, '<html>Bad gateway</html>') } as const,
      { kind: 'other-answer', answer: answerOf(504, '', 'Retry-After: 1') } as const,
      { kind: 'other-answer', answer: cut } as const,
      { kind: 'other-answer', answer: answerOf(200, 'no gzip', 'Content-Encoding: gzip') } as const,
    ]) {
      await proxy.inject(fault, () => true, 1)
      expect(await runProgram(program, through), fault.kind).toEqual(['payout_2'])
      expect(proxy.hits(), fault.kind).toBe(1)
    }
  })

  test('ends within its time, whatever a server does: with silence, and with a byte now and then', async t => {
    const { runProgram, environment } = await shared()
    const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n'
    const program = `
import os, time, httpx
from commission_client import Client
client = Client(os.environ["API"], os.environ["KEY"], timeout=2)
for read in (lambda: client.payout("payout_2"), lambda: list(client.payouts()), lambda: next(client.follow())):
    began = time.monotonic()
    try:
        print(read())
    except httpx.TransportError as error:
        print(type(error).__name__, time.monotonic() - began < 40)
`
    for (const begin of [undefined, '', head, `${head}\r\n{`]) {
      const sockets = new Set<Socket>()
      const server = createServer(socket => {
        sockets.add(socket.on('error', () => undefined))
        if (begin === undefined) return
        socket.write(begin)
        // Within the headers, a byte is part of one more header.
        const timer = setInterval(() => void socket.write('x'), 300)
        socket.on('close', () => clearInterval(timer))
      })
      await new Promise<void>(resolve => void server.listen(0, '127.0.0.1', resolve))
      t.onTestFinished(() => {
        for (const socket of sockets) socket.destroy()
        server.close()
      })
      const { port } = server.address() as AddressInfo
      const silent = { ...environment, API: `http://127.0.0.1:${port}/api/v1` }
      const lines = await runProgram(program, silent)
      const expected = begin === '' ? /^(?:ReadTimeout|RemoteProtocolError) True$/ : /^ReadTimeout True$/
      expect(lines).toHaveLength(3)
      for (const line of lines) expect(line, JSON.stringify(begin)).toMatch(expected)
    }
  })

  test('ends within its time if the name of the server is not resolved, or has addresses that do not answer', async () => {
    const { runProgram } = await shared()
    const program = `
import socket, threading, time, httpx
from commission_client import Client
waiting, mode, asked = threading.Event(), None, []
def resolve(host, port, *given, **more):
    if mode == "silent":
        asked.append(host)
        waiting.wait()
    if host != "example.com":
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))]
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{n}", port)) for n in range(1, 41)]
socket.getaddrinfo = resolve
class Silent(socket.socket):
    def connect(self, address):
        time.sleep(self.gettimeout())
        raise TimeoutError
socket.socket = Silent
for mode in ("silent", "addresses"):
    client = Client("http://example.com/api/v1", "key", timeout=2)
    for _ in range(2):
        began = time.monotonic()
        try:
            print(client.payout("payout_2"))
        except httpx.TransportError as error:
            print(mode, type(error).__name__, time.monotonic() - began < 40)
print(len(asked), threading.active_count())
`
    const silent = ['silent ConnectTimeout True', 'silent ConnectTimeout True']
    // One thread asks, however often the client tries: the process ends although it never gets an answer.
    expect(await runProgram(program)).toEqual([
      ...silent,
      ...silent.map(line => line.replace('silent', 'addresses')),
      '1 2',
    ])
  })

  test('uses the second address of a server whose first address does not answer', async t => {
    const { runProgram, api, environment } = await shared()
    const proxy = await startProxy(t, new URL(api).host)
    const { port } = new URL(`http://${proxy.address}`)
    const program = `
import os, socket, time
from commission_client import Client
resolve = socket.getaddrinfo
def two(host, port, *given, **more):
    if host != "example.com":
        return resolve(host, port, *given, **more)
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in ("127.0.0.9", "127.0.0.1")]
socket.getaddrinfo = two
class Half(socket.socket):
    def connect(self, address):
        if address[0] == "127.0.0.9":
            time.sleep(self.gettimeout())
            raise TimeoutError
        return super().connect(address)
socket.socket = Half
print(Client(os.environ["API"], os.environ["KEY"], timeout=40).payout("payout_2").id)
`
    const named = { ...environment, API: `http://example.com:${port}/api/v1` }
    expect(await runProgram(program, named)).toEqual(['payout_2'])
  })

  test('after a fork, each process gets answers to its own questions, whatever threads of its parent hold', async t => {
    const { runProgram, environment } = await shared()
    const rep = { name: '', email: null, status: 'active', started_on: null, departed_on: null }
    const server = createHttpServer(({ url = '' }, response) => {
      const body = JSON.stringify({ data: { ...rep, id: url.split('/').at(-1) } })
      setTimeout(() => response.setHeader('Content-Type', 'application/json').end(body), 2)
    })
    await new Promise<void>(resolve => void server.listen(0, '127.0.0.1', resolve))
    t.onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    const { port } = server.address() as AddressInfo
    const program = `
import os, signal, threading
from commission_client import Client

# All locks that the client makes.
locks, lock_types = [], (threading.Lock, threading.RLock)
def noted(make):
    return lambda: locks.append(make()) or locks[-1]
threading.Lock, threading.RLock = map(noted, lock_types)
client = Client(os.environ["API"], os.environ["KEY"], timeout=20)
print(client.rep("rep_0").id, flush=True)
threading.Lock, threading.RLock = lock_types

def forks():
    children = []
    for number in (1, 2):
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            try:
                print({client.rep(f"rep_{number}").id for _ in range(50)} == {f"rep_{number}"}, flush=True)
            finally:
                os._exit(0)
        children.append(child)
    print(*[os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children], flush=True)

forks()
held, ended = threading.Event(), threading.Event()
def hold():
    print(all([lock.acquire(timeout=1) for lock in locks]), len(locks) > 1, flush=True)
    held.set()
    ended.wait()
    for lock in locks:
        lock.release()
holding = threading.Thread(target=hold)
holding.start()
held.wait()
forks()
ended.set()
holding.join()
print(client.rep("rep_0").id)
`
    const forked = { ...environment, API: `http://127.0.0.1:${port}/api/v1` }
    const children = ['True', 'True', '0 0']
    expect(await runProgram(program, forked)).toEqual(['rep_0', ...children, 'True True', ...children, 'rep_0'])
  })

  test('parses each answer once', async () => {
    const { runProgram } = await shared()
    const program = `
import json, os
from commission_client import Client
loads, parsed = json.loads, []
json.loads = lambda text, **given: parsed.append(1) or loads(text, **given)
client = Client(os.environ["API"], os.environ["KEY"])
print(client.payout("payout_2").id, len(parsed))
print(*[payout.id for payout in client.payouts()], len(parsed))
`
    expect(await runProgram(program)).toEqual(['payout_2 1', 'payout_2 2'])
  })

  test('an answer of another program is an error, not a short list', async t => {
    const { runProgram, api, environment } = await shared()
    const proxy = await startProxy(t, new URL(api).host)
    const program = [
      'import os, httpx',
      'from commission_client import Client, RefusedError',
      'client = Client(os.environ["API"], os.environ["KEY"], timeout=30)',
      'for read in (lambda: list(client.payouts()), lambda: client.payout("payout_2")):',
      '    try:',
      '        print(read())',
      '    except (RefusedError, httpx.TransportError) as error:',
      '        print(error)',
    ].join('\n')
    const through = { ...environment, API: api.replace(new URL(api).host, proxy.address) }
    const unknown = 'unknown: not an answer of the API'
    for (const [answer, error] of [
      [answerOf(503, '<html>Later</html>'), `503 ${unknown}`],
      [answerOf(403, '{"error":"No."}'), `403 ${unknown}`],
      [answerOf(520, ''), `520 ${unknown}`],
      [answerOf(302, '', 'Location: http://127.0.0.1:1/'), `302 ${unknown}`],
      [answerOf(202, '{"data":[],"has_more":false,"next_cursor":""}'), `202 ${unknown}`],
      [answerOf(200, '{"message":"fine"}'), `200 ${unknown}`],
      [answerOf(200, '<html>Log in</html>', 'Content-Type: text/html'), 'the answer is no whole JSON (text/html)'],
    ] as const) {
      await proxy.inject({ kind: 'other-answer', answer })
      expect(await runProgram(program, through), answer).toEqual([error, error])
    }
  })

  test('an update that fails in the middle loses no change, and two at a time are refused', async () => {
    const { runProgram } = await shared()
    const program = `
import os
from itertools import islice
from commission_client import Client, Copy
client = Client(os.environ["API"], os.environ["KEY"])
changes = client.changes
copy = Copy(client)
def breaking(**given):
    yield from islice(changes(**given), 2)
    raise OSError("the connection ended")
client.changes = breaking
try:
    copy.update()
except OSError as error:
    print(error)
client.changes = changes
print(*[change.id for change in copy.update()])
twice = Copy(client)
try:
    for change in islice(twice.follow(), 5):
        print(change.id)
        twice.update()
except RuntimeError as error:
    print(error)
twice.prove()
`
    expect(await runProgram(program)).toEqual([
      'the connection ended',
      'rep_1.1 period_1.1 payout_1 payout_2 payroll_1',
      'rep_1.1',
      'another update or follow has applied changes to this copy',
    ])
  })

  test('refuses a copy that differs, follows changes, and ends a list that would not end', async () => {
    const { runProgram } = await shared()
    const program = `
import os
from itertools import islice
from types import SimpleNamespace
from commission_client import Client, Copy, CopyDiffersError, read_copy
client = Client(os.environ["API"], os.environ["KEY"])
print(*[change.id for change in islice(client.follow(), 5)])
copy = Copy(client)
for change in islice(copy.follow(), 5):
    copy.prove()
print(copy.state() == read_copy(client).state())
copy.payouts["payout_2"].net_amount += "1"
try:
    copy.prove()
except CopyDiffersError as error:
    print("payout" in str(error) or "period_1" in str(error))
page = SimpleNamespace(data=[], has_more=True, next_cursor="rep_1")
client._page = lambda *given, **more: page
try:
    list(client.reps(starting_after="rep_1"))
except RuntimeError as error:
    print(error)
`
    expect(await runProgram(program)).toEqual([
      'rep_1.1 period_1.1 payout_1 payout_2 payroll_1',
      'True',
      'True',
      'has_more without a new next_cursor',
    ])
  })
})
