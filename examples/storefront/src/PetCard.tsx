/** The card of an animal in the catalogue. */
import type { Pet, PetStatus } from '@petstore-catalogue/petstore/client'
import { Portrait } from './Portrait.tsx'
import { type Filter, links } from './route.ts'
import { type Category, categoryOf, statusNames } from './shop.ts'

interface Props {
  pet: Pet
  /** The filter of the catalogue for the link back. */
  filter: Filter
}

export function PetCard({ pet, filter }: Props) {
  return (
    <a className={`card ${pet.status}`} href={links.pet(pet.id, filter)}>
      <CardContent name={pet.name} category={categoryOf(pet.categoryId)} status={pet.status} />
    </a>
  )
}

interface Content {
  name: string
  /** The name that selects the coat of the picture; `name` by default. */
  coatOf?: string
  /** Undefined until one is selected. */
  category: Category | undefined
  status: PetStatus
}

/** The content of the card of an existing or a new animal. */
export function CardContent({ name, coatOf = name, category, status }: Content) {
  return (
    <>
      <Portrait species={category?.species ?? 'paw'} name={coatOf} />
      <span className="words">
        <span className="name">{name}</span>
        <span className="category">{category?.name}</span>
      </span>
      {/* Available animals have no status on their card. */}
      {status !== 'available' && <span className={`status ${status}`}>{statusNames[status]}</span>}
    </>
  )
}

/** The placeholders for animals in a grid. */
export function Placeholders({ count }: { count: number }) {
  return Array.from({ length: count }, (_, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the placeholders are equal and never move
    <li key={index} className="card skeleton" aria-hidden="true">
      <div className="portrait" />
      <span className="words">
        <span className="name" />
        <span className="category" />
      </span>
    </li>
  ))
}
