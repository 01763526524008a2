/** How an animal looks, in the catalogue and on its own page. */
import type { Pet, PetStatus } from '@petstore-catalogue/petstore/client'
import { links } from './route.ts'

declare module 'react' {
  interface CSSProperties {
    /** Degrees on the colour wheel. */
    '--hue'?: number
  }
}

export function PetCard({ pet }: { pet: Pet }) {
  return (
    <a className="card" href={links.pet(pet.id)}>
      <Portrait pet={pet} />
      <span className="name">{pet.name}</span>
      <span className="facts">
        <span>Category {String(pet.categoryId)}</span>
        <Status status={pet.status} />
      </span>
    </a>
  )
}

/** A picture in place of a photograph: the initial, in a colour of the category. */
export function Portrait({ pet }: { pet: Pet }) {
  const [initial = ''] = pet.name.trim()
  // Steps of the golden angle keep categories apart; animals of one differ a little.
  const hue = Number(BigInt.asUintN(32, pet.categoryId)) * 137.508 + Number(pet.id % 5n) * 9
  return (
    <span className="portrait" aria-hidden="true" style={{ '--hue': hue % 360 }}>
      {initial.toUpperCase()}
    </span>
  )
}

export function Status({ status }: { status: PetStatus }) {
  return <span className={`status ${status}`}>{status}</span>
}
