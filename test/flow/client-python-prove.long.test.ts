/** The copy of the Python client: its proof with a checkpoint, what it hands over, and its sums. */
import { describe, expect, test } from 'vitest'
import { pythonProgram } from '../support/programs.ts'
import { installPythonClient } from '../support/python-client.ts'
import { fileScope } from '../support/scope.ts'

const scope = fileScope()
let started: ReturnType<typeof installPythonClient> | undefined
const shared = () => (started ??= installPythonClient(scope))

describe.skipIf(pythonProgram === undefined)('a copy of the Python client', () => {
  test('proves a copy with a checkpoint, and refuses one that was altered or a note of another key', async () => {
    const { runProgram, installProof, environment, publicKey } = await shared()
    const program = `
import json, os
from commission_client import CheckpointInvalidError, Client, Copy, CopyDiffersError, read_copy
client, key = Client(os.environ["API"], os.environ["KEY"]), os.environ["PUBLIC_KEY"]
copy = read_copy(client)
proof = copy.prove(key)
print(proof.checkpoint.sequence, proof.checkpoint.change_id, proof.totals_compared, proof.checkpoint.totals)
stored = json.loads(json.dumps(copy.state()))
print(Copy(client, stored).prove(key) == proof, len(stored["changes"]), stored["proved"]["organization"])
print(Copy(client).prove(key) == proof)
anew = read_copy(client, stored)
other = key[:-2] + ("A" if key[-2] != "A" else "B") + key[-1]
print(anew.prove([other, key]).continues == proof.checkpoint, anew.state()["continues"] == stored["proved"])
before = {**stored, "proved": {**stored["proved"], "digest": "00" * 32}}
for line, sequence in (("rules-0", 5), (proof.checkpoint.line, 5), (proof.checkpoint.line, 6)):
    try:
        proved = {**before["proved"], "line": line, "sequence": sequence}
        print(read_copy(client, {**before, "proved": proved}).prove(key).continues.line)
    except CopyDiffersError as error:
        print(error)
for field, value, by in (("net_amount", "12.51", key), ("rep_id", "rep_2", key), ("rep_id", "rep_1", other)):
    altered = json.loads(json.dumps(stored))
    altered["payouts"][0][field] = value
    for state in (altered, {**altered, "changes": None}):
        try:
            Copy(client, state).prove(by)
        except (CheckpointInvalidError, CopyDiffersError) as error:
            print(type(error).__name__)
`
    const asked = { ...environment, PUBLIC_KEY: publicKey }
    // The package of signatures is an extra.
    await expect(runProgram(program, asked)).rejects.toThrow("No module named 'cryptography'")
    await installProof()
    expect(await runProgram(program, asked)).toEqual([
      "5 payroll_1 True {'EUR': {'owed': '12.5', 'paid': '-1.5', 'open': '14'}}",
      'True 5 org_example',
      'True',
      'True True',
      'rules-0',
      'up to change 5, the service has signed another history before',
      'the service has signed 6 changes, and serves 5',
      ...Array.from({ length: 4 }, () => 'CopyDiffersError'),
      ...Array.from({ length: 2 }, () => 'CheckpointInvalidError'),
    ])
  })

  test('hands over the changes that a proof has applied, and those since a copy that was read anew', async () => {
    const { runProgram, installProof, environment, publicKey } = await shared()
    await installProof()
    const program = `
import json, os
from itertools import islice
from commission_client import Client, Copy, CopyDiffersError, read_copy
client = Client(os.environ["API"], os.environ["KEY"])
proved = Copy(client)
proved.prove(os.environ["PUBLIC_KEY"])
state = json.loads(json.dumps(proved.state()))
print(*[change.id for change in islice(Copy(client, state).follow(), 2)])
for copy in (Copy(client, state), proved):
    print(*[change.id for change in copy.update()])
    print(copy.last_change_id, copy.update(), "handed_over" in copy.state())
for handed_over in ({"handed_over": "period_1.1"}, {}, {"handed_over": None}):
    before = {**Copy(client).state(), "last_change_id": "payout_1", **handed_over}
    print(*[change.id for change in Copy(client, read_copy(client, before).state()).update()])
before = {**Copy(client).state(), "last_change_id": "payout_9"}
for hand_over in (None, "all", "none"):
    try:
        print(*[change.id for change in read_copy(client, before, hand_over=hand_over).update()])
    except CopyDiffersError as error:
        print(error)
passed = Copy(client, {**Copy(client).state(), "last_change_id": "payout_1", "handed_over": "payout_2"})
for read in (passed.update, lambda: list(passed.follow()), lambda: list(passed.follow())):
    try:
        print(read())
    except CopyDiffersError as error:
        print(error, passed.state()["handed_over"])
`
    const isGone = 'the API has not served change payout_1, the last one of the copy: read the copy anew'
    const all = 'rep_1.1 period_1.1 payout_1 payout_2 payroll_1'
    const asked = { ...environment, PUBLIC_KEY: publicKey }
    expect(await runProgram(program, asked)).toEqual([
      'rep_1.1 period_1.1',
      ...[all, 'payroll_1 [] False'],
      ...[all, 'payroll_1 [] False'],
      'payout_1 payout_2 payroll_1',
      'payout_2 payroll_1',
      all,
      "the API has no change payout_9, the last one handed over: choose hand_over 'all' (from the beginning) or 'none' (leave out all until now)",
      all,
      '',
      `${isGone} payout_2`,
      ...[`${isGone} payroll_1`, `${isGone} payroll_1`],
    ])
  })

  test('has records of its own, refuses a gap, and adds up exactly what is open', async () => {
    const { runProgram } = await shared()
    const program = `
import os
from types import SimpleNamespace
from commission_client import Client, Copy, read_copy
client = Client(os.environ["API"], os.environ["KEY"])
copy = Copy(client)
for change in copy.update():
    for name in ("net_amount", "amount"):
        if hasattr(change.record, name):
            setattr(change.record, name, "0")
copy.prove()
(total,) = copy.totals().values()
print(total["owed"], total["paid"], total["open"])
changes = client.changes
for state in (None, Copy(client).state(), {**Copy(client).state(), "last_sequence": 3}):
    client.changes = lambda **given: (change for change in changes(**given) if change.sequence != 3)
    broken = Copy(client, state)
    try:
        broken.update()
    except RuntimeError as error:
        print(error, broken.last_change_id)
    client.changes = changes
    if state is None:
        print(*[change.id for change in Copy(client, broken.state()).update()])
print(read_copy(client).state()["last_sequence"])
large = Copy(client)
large.payouts["one"] = SimpleNamespace(period_id="period_1", currency="EUR", net_amount="9" * 40 + ".1")
large.payroll_records["one"] = SimpleNamespace(period_id="period_1", currency="EUR", amount="0." + "0" * 39 + "1")
print(large.totals()["period_1", "EUR"]["open"])
`
    const gap = (expected: number, got: number) =>
      `expected the change with sequence ${expected}, got ${got}: read the copy anew`
    expect(await runProgram(program)).toEqual([
      '12.50 -1.50 14.00',
      `${gap(3, 4)} period_1.1`,
      'rep_1.1 period_1.1 payout_1 payout_2 payroll_1',
      `${gap(3, 4)} period_1.1`,
      `${gap(4, 1)} None`,
      '5',
      `${'9'.repeat(40)}.0${'9'.repeat(39)}`,
    ])
  })

  test('refuses a checkpoint with fewer changes that was signed later, and takes an older one', async () => {
    const { runProgram, installProof, environment, publicKey } = await shared()
    await installProof()
    const program = `
import os
from base64 import b64encode
from datetime import datetime, timedelta
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from commission_client import CheckpointInvalidError, Client, Copy, CopyDiffersError
copy = Copy(Client(os.environ["API"], os.environ["KEY"]))
signed = copy.prove(os.environ["PUBLIC_KEY"]).checkpoint
secret = Ed25519PrivateKey.generate()
public = "test+00000000+" + b64encode(b"\\1" + secret.public_key().public_bytes_raw()).decode()

def prove(sequence, time, line=signed.line):
    text = (
        f"commission checkpoint 1\\norganization {signed.organization}\\nline {line}\\nsequence {sequence}\\n"
        f"change any\\ndigest {copy._served.digests({sequence})[sequence]}\\ntime {time}\\n"
    )
    note = f"{text}\\n\u2014 test {b64encode(bytes(4) + secret.sign(text.encode())).decode()}\\n"
    copy._client.checkpoint = lambda: note
    try:
        print(copy.prove(public).checkpoint.sequence, copy.state()["proved"]["sequence"])
    except (CheckpointInvalidError, CopyDiffersError) as error:
        print(type(error).__name__, str(error).rpartition(": ")[2])

def after(**more):
    return (datetime.fromisoformat(signed.time) + timedelta(**more)).isoformat()

prove(4, after(minutes=-1))
prove(4, after(seconds=23))
prove(4, after(hours=1))
prove(0, after(days=30))
prove(4, after(hours=1), "rules-0")
prove(4, "soon")
`
    const asked = { ...environment, PUBLIC_KEY: publicKey }
    expect(await runProgram(program, asked)).toEqual([
      '4 5',
      '4 5',
      'CopyDiffersError its history went back',
      'CopyDiffersError its history went back',
      expect.stringMatching(/^CopyDiffersError its rules changed from rules-\d+ to rules-0, so read the copy anew$/),
      'CheckpointInvalidError the time of the checkpoint is no instant',
    ])
  })
})
