/** One value in many spellings, as JSON and in an address. */
import fc from 'fast-check'

/** Gives numbers from 0 to below `count`, always the same ones for one spelling. */
export type Choose = (count: number) => number

/** Spellings: what is chosen wherever there is a choice. */
export const spelling: fc.Arbitrary<number[]> = fc.array(fc.nat(1_000), {
  minLength: 1,
  maxLength: 16,
})

/** The choices of a spelling, over and over again. */
export function chooser(choices: number[]): Choose {
  let index = 0
  return (count) => (choices[index++ % choices.length] ?? 0) % count
}

/** Writes a value as JSON; bigints digit for digit, fields that are undefined not at all. */
export function spelledJson(value: unknown, choose: Choose): string {
  const space = () => ['', '', ' ', '\n\t'][choose(4)] ?? ''
  const write = (item: unknown): string => {
    if (typeof item === 'string') return spelledString(item, choose)
    if (typeof item === 'bigint' || Number.isInteger(item))
      return spelledInteger(item as number, choose) // the line before looked at it
    if (Array.isArray(item)) return `[${item.map((one) => space() + write(one) + space())}]`
    if (typeof item !== 'object' || item === null) return JSON.stringify(item)
    const fields = Object.entries(item).filter(([, field]) => field !== undefined)
    return `{${fields.map(([key, field]) => {
      const one = `${space()}${spelledString(key, choose)}${space()}:${space()}${write(field)}`
      // Of a name given twice the last counts.
      return choose(8) === 0 ? `${JSON.stringify(key)}:[0,"x"],${one}` : one
    })}${space()}}`
  }
  const byteOrderMark = choose(8) === 0 ? '\ufeff' : ''
  return byteOrderMark + space() + write(value) + space()
}

function spelledString(text: string, choose: Choose): string {
  const plain = JSON.stringify(text)
  if (choose(3) > 0) return plain
  const units = Array.from({ length: text.length }, (_, index) => text.charCodeAt(index))
  return `"${units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')}"`
}

function spelledInteger(value: number | bigint, choose: Choose): string {
  const digits = Object.is(value, -0) ? '-0' : String(value)
  const shifted = value ? `${digits}000e-3` : `${digits}e-3` // no zeros in front in JSON
  const forms = [digits, digits, digits, `${digits}.0`, `${digits}e0`, `${digits}.00E+0`, shifted]
  return forms[choose(forms.length)] ?? digits
}

/** Writes an integer as an address may: zeros in front count for nothing. */
export function spelledDigits(value: bigint, choose: Choose): string {
  const zeros = ['', '', '0', '000'][choose(4)] ?? ''
  const sign = value < 0n || (value === 0n && choose(2) === 0) ? '-' : ''
  return `${sign}${zeros}${value < 0n ? -value : value}`
}

/** Escapes text for an address: what must be, or every byte. */
export function spelledText(text: string, choose: Choose): string {
  if (choose(2) === 0) return encodeURIComponent(text)
  const escapes = [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`)
  return choose(2) === 0 ? escapes.join('') : escapes.join('').toUpperCase()
}

/** Writes a query; a space may be a plus there. */
export function spelledQuery(parameters: [name: string, text: string][], choose: Choose): string {
  const write = (text: string) =>
    choose(3) === 0 ? encodeURIComponent(text).replaceAll('%20', '+') : spelledText(text, choose)
  return parameters.map(([name, text]) => `${write(name)}=${write(text)}`).join('&')
}
