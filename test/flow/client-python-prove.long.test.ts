/** A copy of the Python client that is proved with a checkpoint. */
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
before = {"proved": {**stored["proved"], "digest": "00" * 32}}
for line, sequence in (("rules-0", 5), (proof.checkpoint.line, 5), (proof.checkpoint.line, 6)):
    try:
        print(read_copy(client, {"proved": {**before["proved"], "line": line, "sequence": sequence}}).prove(key).continues.line)
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
