"""Which words is the sample made of?

All written by hand for this project. An entry is `Arabic spellings / Arabizi spellings`,
spellings apart by `|`; where gender matters, `masculine ; feminine`. A leading `*` keeps
the whole entry out of train, and so is the last of three spellings or more in a script.
The first word of a line is who says it (ma Moroccan, dz Algerian, xx both), with the fields
it fits after a dot; in ASPECTS it is the gender.
"""

from __future__ import annotations

# What is judged: (gender, entry). Adjectives may be bound to one of these fields.
ASPECTS = {
    "food": """
        f الماكلة / lmakla|lmekla|elmakla
        f القهوة / l9ahwa|lqahwa|el9ahwa
        m السيرفيس|السرفيس / service|serfis|serbis
        m الطاجين / tajine|tajin
        f البيتزا / pizza|lpitza
        m الكسكس|الكسكسو / lkoskso|couscous|lkesksou
        m السندويش / sandwich|sandwitch
        m الريسطو|الريستو / resto|risto
        f الحريرة / l7rira|lhrira
        f *الشوربة / chorba|chourba
        m *الشوا / chwa|lechwa""",
    "phone": """
        m التيليفون|التلفون|تيليفون / telephone|tilifoun|telifon
        f الباتري|الباطري / batterie|batri|lbatri
        f الكاميرا / camera|lcamera|kamira
        m الإيكران|ليكران / ecran|lecran|likran
        m الشارجور / chargeur|charjour
        m البورطابل|البرطابل / portable|lportabl|bortable
        f *الطابليت / tablette|tablit
        m *الكيت / kit|lkit""",
    "net": """
        f الكونيكسيون|الكونكسيون / connexion|connexiou|lconnexion
        m الريزو|ريزو / reseau|rizou|lrizo
        m الويفي / wifi|lwifi|wi-fi
        m الأبونمون|لابونمون / abonnement|labonnement
        m المودام / modem|lmodem
        f الفيبر / fibre|lfibre
        m *الديبي / debit|ldebit
        f *البوس / puce|lapuce""",
    "film": """
        m الفيلم|فيلم / film|lfilm|filme
        m المسلسل|لمسلسل / mosalsal|lmosalsal|mouslsal
        m التمثيل / tamtil|ltamtil
        f القصة|القيصة / l9issa|lqissa|el9issa
        f الحلقة / l7al9a|lhal9a|lhalqa
        f الموسيقى / lmousi9a|musique
        m *السيناريو / scenario|sinario
        f *المسرحية / masra7ia|lmasrahia""",
    "office": """
        f الإدارة|لادارة / lidara|l2idara|elidara
        m السبيطار|سبيطار / sbitar|lsbitar|sbittar
        f البلدية / lbaladia|lbaladiya|baladiya
        m الموظف / lmowaddaf|lmouwadaf
        m الطوبيس|الطوبيص / tobis|toubis|ttobis
        m الطرام|الطرامواي / tram|tramway|ttram
        f البوسطة|لبوسطة / lbosta|lposte|elbosta
        m *القطار|التران / train|tran
        f *المصلحة / lmasla7a|lmaslaha""",
}

# Judging words. The first word of a line says who uses it (ma, dz or both: xx) and,
# after a dot, the one field it fits.
GOOD = """
    ma مزيان|مزياان / mzyan|mzian|meziane ; مزيانة|مزيانه / mzyana|mziana|meziana
    ma زوين|زوييين / zwin|zouin|zwine ; زوينة|زوينه / zwina|zouina|zwinna
    ma واعر / wa3er|wa3r|ouaer ; واعرة / wa3ra|waara
    dz مليح|مليييح / mli7|mlih|meli7 ; مليحة|مليحه / mli7a|mliha|meli7a
    dz شباب|شبااب / chbab|chebab|chbeb ; شابة / chaba|chabba
    xx هايل|هاايل / hayel|hayl|hail ; هايلة|هايله / hayla|haila
    xx.food بنين|بنيين / bnin|bnine|benin ; بنينة / bnina|bninna
    xx روعة|روعه|رووعة / raw3a|rou3a|raw3aa
    xx.food,phone,net نقي / n9i|nqi ; نقية / n9iya|nqia
    xx طوب / top|toop
    ma *غزال / ghzal|8zal ; *غزالة / ghzala|8zala
    ma *ناضي / nadi|naddi ; *ناضية / nadia|naddia
    dz *فور / for|fort
    xx *ممتاز / momtaz|moumtaz ; *ممتازة / momtaza|moumtaza
"""
BAD = """
    ma خايب|خاييب / khayb|khayeb|5ayb ; خايبة|خايبه / khayba|khaiba|5ayba
    xx عيان|عياان / 3yan|3eyyan|3ayan ; عيانة|عيانه / 3yana|3eyyana|3ayana
    dz خامج / khamj|khamej|5amej ; خامجة / khamja|5amja
    ma.food,film,office خانز / khanz|khanez ; خانزة / khanza|5anza
    xx معفن / m3affen|m3efen ; معفنة / m3affna|m3efna
    xx كارثة|كارثه|كااارثة / karita|kaarita|karitha
    xx.food,phone,net غالي / ghali|8ali ; غالية / ghalia|ghalya|8alia
    xx.net تقيل|ثقيل / t9il|tqil ; تقيلة|ثقيلة / t9ila|tqila
    xx.film باسل / bassel|basel ; باسلة / basla|bassla
    xx زيرو / zero|ziro
    xx ناقص / na9es|naqes ; ناقصة / na9sa|naqsa
    ma *مخربق / mkherbe9|mkharba9 ; *مخربقة / mkherb9a|mkharb9a
    dz *مكسر / mkasser|mkesser ; *مكسرة / mkassra|mkessra
    xx *فاشل / fachel|fachil ; *فاشلة / fachla|fachila
"""
LOVE = """
    ma عجبني|عجبنيي / 3jebni|3jbni|3ajebni ; عجباتني / 3jbatni|3jebatni|3ajbatni
    ma كنبغيه / kanbghih|kanb8ih ; كنبغيها / kanbghiha|kanb8iha
    ma كيستاهل / kaysta7el|kaystahel|kaysta7l ; كتستاهل / katsta7el|katstahel
    ma.phone,net,office كيخدم مزيان / kaykhdem mzyan|kaykhdm mzian ; كتخدم مزيان / katkhdem mzyan
    ma.food,office غادي نرجع ليه / ghadi nrje3 lih ; غادي نرجع ليها / ghadi nrje3 liha
    ma *كنصح بيه / kanse7 bih|kansa7 bih ; *كنصح بيها / kanse7 biha|kansa7 biha
    dz عجبني / 3jebni|3djebni|a3jebni ; عجبتني / 3jebtni|3djebetni
    dz نحبو|نحبوو / n7ebbo|nhabo|n7abou ; نحبها / n7ebha|nhabha
    dz يستاهل / yestahel|yesta7el|yestahal ; تستاهل / testahel|testa7el
    dz.phone,net,office يمشي مليح / yemchi mli7|yamchi mlih ; تمشي مليح / temchi mli7|tamchi mlih
    dz.food,office نعاود نرجعلو / n3awed nerja3lo|n3awd nerj3lo ; نعاود نرجعلها / n3awed nerja3lha
    dz *ننصحكم بيه / nensa7kom bih|nensahkom bih ; *ننصحكم بيها / nensa7kom biha
    xx تبارك الله عليه / tbarkellah 3lih|tbarkalah 3lih ; تبارك الله عليها / tbarkellah 3liha
    xx فرحني / fre7ni|far7ni ; فرحاتني / fer7atni|far7atni
"""
HATE = """
    ma ما عجبنيش|ماعجبنيش / ma3jebnich|ma 3jbnich|ma3jbnix ; ما عجباتنيش / ma3jbatnich|ma3jbatnix
    ma.phone,net,office ما كيخدمش|ماكيخدمش / makaykhdemch|makaykhdmch ; ما كتخدمش / makatkhdemch
    ma ما كيسوا والو / makayswa walo|makayswa walou ; ما كتسوا والو / makatswa walo
    ma ندمت عليه / ndemt 3lih|ndmt 3lih ; ندمت عليها / ndemt 3liha|ndmt 3liha
    ma.food,office ماغانرجعش ليه / maghanrje3ch lih ; ماغانرجعش ليها / maghanrje3ch liha
    ma *فقصني / fe9esni|fqesni ; *فقصاتني / fe9satni|fqsatni
    dz ما عجبنيش|ماعجبنيش / ma3jebnich|ma3djebnich|ma3jabnich ; ما عجبتنيش / ma3jebtnich
    dz.phone,net,office ما يخدمش|مايخدمش / mayekhdemch|mayakhdamch ; ما تخدمش / matekhdemch
    dz ما يسوا والو|ما يسوى والو / mayeswa walo|mayeswa walou ; ما تسوا والو / mateswa walo
    dz.phone,net,office ما يمشيش|مايمشيش / mayemchich|mayamchich ; ما تمشيش / matemchich
    dz.food,office ما نزيدش نرجعلو / manzidch nerja3lo ; ما نزيدش نرجعلها / manzidch nerja3lha
    dz *قلقني / gell9ni|9ala9ni ; *قلقتني / gell9etni|9al9etni
    xx كرهتو / krehto|krahtou ; كرهتها / krehtha|krahtha
    xx.net,film,office غير تضياع الوقت / ghir tedya3 lwe9t|ghir tedya3 lwa9t
    xx حشومة|حشومه / 7chouma|hchouma|7choma
"""
NO_FAULT = """
    ma ما فيه حتى مشكل / mafih 7ta mochkil|mafih hta mouchkil ; ما فيها حتى مشكل / mafiha 7ta mochkl
    ma ما ندمتش عليه / mandemtch 3lih|mandmtch 3lih ; ما ندمتش عليها / mandemtch 3liha
    dz ما فيه حتى عيب / mafih 7ata 3ib|mafih hata 3ayb ; ما فيها حتى عيب / mafiha 7ata 3ib
    dz ما قلقنيش / ma9ala9nich|magell9nich ; ما قلقتنيش / ma9al9etnich
    xx ما خيبش ظني / makhayebch danni ; ما خيباتش ظني / makhaybatch danni
"""
NO_GOOD = """
    ma ما فيه حتى حاجة زوينة / mafih 7ta 7aja zwina ; ما فيها حتى حاجة زوينة / mafiha 7ta 7aja zwina
    ma عمرو ما كان مزيان / 3emro makan mzyan ; عمرها ما كانت مزيانة / 3merha makant mzyana
    dz ما فيه والو مليح / mafih walo mli7 ; ما فيها والو مليح / mafiha walo mli7
    dz عمرو ما كان مليح / 3amro makan mli7 ; عمرها ما كانت مليحة / 3amrha makanet mli7a
    xx ما كاين ما يعجب / makayn may3jeb|makayen mayo3jeb
"""
FACT = """
    ma.food,phone,net جربتو البارح / jerrebto lbare7 ; جربتها البارح / jerrebtha lbare7
    ma.film تفرجت فيه البارح / tferrejt fih lbare7 ; تفرجت فيها البارح / tferrejt fiha lbare7
    ma.office مشيت ليه البارح / mchit lih lbare7 ; مشيت ليها البارح / mchit liha lbare7
    ma.food,phone,net مازال ما جربتو / mazal majrebto ; مازال ما جربتها / mazal majrebtha
    ma غادي نشوفو غدا / ghadi nchoufo ghedda ; غادي نشوفها غدا / ghadi nchoufha ghedda
    ma.food,office كاين حدا الدار / kayn 7da dar ; كاينة حدا الدار / kayna 7da dar
    dz.food,phone,net جربتو البارح / jarrabto lbare7 ; جربتها البارح / jarrabtha lbare7
    dz.film,office شفتو البارح / cheftou lbare7 ; شفتها البارح / cheftha lbare7
    dz.food,phone,net مازال ما جربتوش / mazal majarrabtouch ; مازال ما جربتهاش / mazal majarrabthach
    dz رايح نشوفو غدوة / raye7 nchoufo ghodwa ; رايح نشوفها غدوة / raye7 nchoufha ghodwa
    dz سمعت بيه برك / sma3t bih berk ; سمعت بيها برك / sma3t biha berk
    xx بدلوه هاد السيمانة / beddlouh had simana ; بدلوها هاد السيمانة / beddlouha had simana
    xx *بداو بيه هاد العام / bdaw bih had l3am ; *بداو بيها هاد العام / bdaw biha had l3am
    xx *كيما ديما / kima dima
    xx عادي / 3adi|aadi ; عادية / 3adia|aadia
    xx نورمال / normal|nrml
    ma بحال الباقي / b7al lba9i|bhal lbaqi
    xx بين وبين / bin w bin|bin o bin
"""
WORDS = {  # the rest of a sentence, by slot
    "not": "ma ماشي|مشي / machi|mchi\n dz ماشي|ماهوش / machi|mahouch ; ماشي|ماهيش / machi|mahich",
    "very": """ma بزاف|بزااف / bzaf|bezzaf|bzzaf
        dz بزاف|بزاااف / bezzaf|bezaf|bzf
        ma نيت / nit
        xx والله / wallah|wlh""",
    "but": "ma ولكن|والكن / walakin|walakine\n dz بصح / bessa7|bsah",
    "was": "xx كان / kan ; كانت / kant|kanet",
    "became": """ma ودابا ولا / w daba wella|o daba wla ; ودابا ولات / w daba wellat
        dz ودرك ولا / w derk wella|w dork wella ; ودرك ولات / w derk wellat""",
    "is_it": "ma واش / wach|wax\n dz واش / wach|wech",
    "who": """xx شكون يعرف / chkoun ya3ref|chkoun y3raf
        xx.food,phone,net شكون جرب / chkoun jerreb|chkon jarab""",
    "where": """ma فين كاين / fin kayn ; فين كاينة / fin kayna
        dz وين راه / win rah ; وين راهي / win rahi""",
    "price": """ma.food,phone,net شحال كيدير / ch7al kaydir ; شحال كتدير / ch7al katdir
        dz.food,phone,net شحال يدير / ch7al ydir ; شحال تدير / ch7al tdir""",
    "or": "xx ولا / wla|wela",
    "neither": "xx لا / la",
    "they_say": "ma قالو ليا / galo lia|gallo liya\n dz قالولي / galouli|9alouli",
    "untried": """ma وباقي ما شفتو / w ba9i machefto ; وباقي ما شفتها / w ba9i macheftha
        dz ومازال ما شفتو / w mazal macheftou ; ومازال ما شفتها / w mazal macheftha""",
    "start": """xx صراحة|بصراحة / sara7a|sra7a|bsara7a
        xx والله / wallah|wlh
        xx خويا / khoya|5oya
        ma هاد المرة / had lmerra
        xx السلام / slm|salam
        xx شوفو / choufo|chofo
        xx بالنسبة ليا / bnesba lia|bnisba liya""",
    "end": """ma فكازا / f casa|fcasa
        ma فالرباط / f rabat
        ma فطنجة / f tanja
        ma فمراكش / f merrakech
        dz فوهران / f wahran
        dz فالعاصمة / f l3asima
        dz فقسنطينة / f 9santina
        dz فعنابة / f 3annaba
        xx فالعشية / f l3chiya
        xx هههه / hhhh|hhh|hhhhh
        xx هاد الصيف / had sif""",
}

# Templates: weight, then slots. `2` marks the other aspect, with its own gender.
PLAIN = {
    "positive": ["2 aspect good very", "1 aspect good", "2 aspect love", "4 aspect good love"],
    "negative": ["2 aspect bad very", "1 aspect bad", "2 aspect hate", "4 aspect bad hate"],
    "neutral": ["3 aspect fact", "1 who aspect ?", "1 where aspect ?", "1 price aspect ?"],
}
HARD = {
    "positive": [
        "2 aspect2 bad2 but aspect love",
        "2 was aspect bad became good",
        "2 aspect no_fault",
        "1 aspect not bad love",
        "1 aspect not bad no_fault",
    ],
    "negative": [
        "2 aspect2 good2 but aspect hate",
        "2 was aspect good became bad",
        "2 aspect no_good",
        "3 aspect not good",
        "1 aspect not good very",
    ],
    "neutral": [
        "2 is_it aspect good ?",
        "1 is_it aspect bad or good ?",
        "1 aspect neither good neither bad",
        "2 they_say aspect good untried",
        "1 they_say aspect bad untried",
    ],
}
