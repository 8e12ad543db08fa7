/** Signed copies that grow: parts that are each as they were signed, and do not belong together. */
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createSigningKey, textOfSigningKey, textOfVerifierKey } from '../../../core/runtime/index.ts'
import { directoryTarget } from '../../../tools/archive/target.ts'
import { verifyEvidence } from '../../../tools/evidence/verify.ts'
import { signFolder } from '../../../tools/signing/sign-manifest.ts'
import { emptyCopy, grownCopy, growTo } from '../../support/growing-copies.ts'

const key = createSigningKey('auditor.example/a')
const PUBLIC = textOfVerifierKey(key.verifier)

const verify = async (directory: string) => {
  const out: string[] = []
  const steps = {
    ...{ out: (text: string) => void out.push(text), say: () => undefined, draw: undefined, elapsed: () => 0 },
    ...{ sleep: async () => undefined, signal: new AbortController().signal },
    openTarget: async () => directoryTarget(directory),
  }
  const code = await verifyEvidence({ address: directory, keys: [PUBLIC], json: true }, steps)
  const { kind, signed, differences, unfinished } = JSON.parse(out.join('')) as Record<string, string[]>
  return { code, kind, signed: signed?.length, differences, unfinished }
}
const signing = (): { sign: string } => {
  const sign = join(emptyCopy(), 'key')
  writeFileSync(sign, textOfSigningKey(key))
  return { sign }
}
/** Part 1 goes up to another change than that of `grownCopy`. */
const anotherCopy = async (): Promise<string> => {
  const [out, more] = [emptyCopy(), signing()]
  for (const end of [3, 7, 10]) expect(await growTo(out, end, more)).toBe(0)
  return out
}
const replacePart = (out: string, from: string, part: string): void => {
  rmSync(join(out, part), { recursive: true })
  cpSync(join(from, part), join(out, part), { recursive: true })
}

test('a copy whose parts continue each other is whole, also with an unfinished part', async () => {
  const out = await grownCopy(signing())
  expect(await verify(out)).toEqual({ code: 0, kind: 'copy', signed: 3, differences: [], unfinished: [] })
  mkdirSync(join(out, 'unfinished'))
  writeFileSync(join(out, 'unfinished', 'reps.ndjson'), '')
  const unfinished = [expect.stringContaining('/unfinished: of a run that goes on')]
  expect(await verify(out)).toMatchObject({ code: 0, differences: [], unfinished })
})

test('a part of another copy is named, though it is signed and unchanged', async () => {
  const out = await grownCopy(signing())
  const what = `${join(out, 'part-000002')} is not the continuation of the part before it`
  replacePart(out, await anotherCopy(), 'part-000002')
  expect(await verify(out)).toMatchObject({
    code: 3,
    signed: 3,
    differences: [what, expect.stringContaining('part-000003')],
  })
  const first = await grownCopy(signing())
  replacePart(first, await anotherCopy(), 'part-000001')
  expect(await verify(first)).toMatchObject({ code: 3, differences: [expect.stringContaining('part-000002 is not')] })
  for (const [field, value, message] of [
    ['rules_version', 3, 'of other rules'],
    ['organization', 'org_b', 'part-000003 is of org_b'],
    ['opened', true, 'with opened texts'],
    ['generation', 'g2', 'part-000003 is of g2'],
  ] as const) {
    const out = await grownCopy(signing())
    const [part, file] = [join(out, 'part-000003'), join(out, 'part-000003', 'manifest.json')]
    writeFileSync(file, `${JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), [field]: value })}\n`)
    await signFolder(part, key)
    expect(await verify(out)).toMatchObject({ code: 3, signed: 3, differences: [expect.stringContaining(message)] })
  }
})

test('a part that is lost is named, in the middle, at the beginning and at the end', async () => {
  for (const part of ['part-000001', 'part-000002', 'part-000003']) {
    const out = await grownCopy(signing())
    rmSync(join(out, part), { recursive: true })
    const { code, differences = [] } = await verify(out)
    expect([code, differences[0]]).toEqual([3, expect.stringContaining(`${join(out, part)}: this part is lost`)])
  }
  const renamed = await grownCopy(signing())
  rmSync(join(renamed, 'part-000001'), { recursive: true })
  renameSync(join(renamed, 'part-000002'), join(renamed, 'part-000001'))
  renameSync(join(renamed, 'part-000003'), join(renamed, 'part-000002'))
  const [first] = (await verify(renamed)).differences ?? []
  expect(first).toContain('part-000001 is a later part of a copy, in place of the first one')
})

test('a changed part, a link, a file of others and a lost or cut last-part.json are named', async () => {
  const damages: readonly [(out: string) => void, string][] = [
    [out => writeFileSync(join(out, 'part-000002', 'reps.ndjson'), '{}\n'), 'part-000002/reps.ndjson: it was changed'],
    [out => rmSync(join(out, 'part-000002', 'manifest.note')), 'part-000002/manifest.json is not signed'],
    [
      out => {
        renameSync(join(out, 'part-000002'), join(out, 'moved'))
        symlinkSync(join(out, 'moved'), join(out, 'part-000002'))
      },
      'part-000002: it is a symbolic link',
    ],
    [out => writeFileSync(join(out, 'notes.txt'), ''), 'notes.txt: no copy has such a file'],
    [out => rmSync(join(out, 'last-part.json')), 'last-part.json: this file is lost'],
    [
      out => writeFileSync(join(out, 'last-part.json'), readFileSync(join(out, 'last-part.json')).subarray(0, 9)),
      'last-part.json: expected the name of the last part',
    ],
    [
      out => {
        rmSync(join(out, 'part-000003'), { recursive: true })
        writeFileSync(join(out, 'last-part.json'), '{"part":"part-000003"}\n')
      },
      'part-000003: this part is lost',
    ],
  ]
  for (const [damage, message] of damages) {
    const out = await grownCopy(signing())
    damage(out)
    const { code, differences } = await verify(out)
    expect(code).toBe(3)
    expect(differences?.join('\n')).toContain(message)
  }
})

test('a later part whose manifest says after nothing does not continue the part before it', async () => {
  const out = await grownCopy(signing())
  const [part, file] = [join(out, 'part-000002'), join(out, 'part-000002', 'manifest.json')]
  writeFileSync(file, `${JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), after: null })}\n`)
  await signFolder(part, key)
  const { code, differences } = await verify(out)
  expect([code, differences?.[0]]).toEqual([3, `${part} is not the continuation of the part before it`])
})
